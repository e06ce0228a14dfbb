import { chmodSync, existsSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { newSecret } from "./ids.ts";

/** The API token: made at the first start, readable by its owner alone. */
export function loadToken(dataDir: string): { token: string; path: string } {
  const path = join(dataDir, "token");
  if (!existsSync(path)) {
    const draft = `${path}.new`;
    writeFileSync(draft, `${newSecret()}\n`, { mode: 0o600 });
    renameSync(draft, path);
  }
  chmodSync(path, 0o600);
  return { token: readFileSync(path, "utf8").trim(), path };
}
