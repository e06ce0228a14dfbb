import { chmodSync, existsSync, linkSync, readFileSync, unlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { newSecret } from "./ids.ts";

/** The API token: made at the first start, readable by its owner alone. */
export function loadToken(dataDir: string): { token: string; path: string } {
  const path = join(dataDir, "token");
  if (!existsSync(path)) makeToken(path);
  chmodSync(path, 0o600);
  return { token: readFileSync(path, "utf8").trim(), path };
}

/** Of servers that share the data dir and start at the same time, one makes it for all. */
function makeToken(path: string): void {
  const draft = `${path}.${process.pid}.new`;
  writeFileSync(draft, `${newSecret()}\n`, { mode: 0o600 });
  try {
    // Unlike a rename, this does not take the place of one that another has just made.
    linkSync(draft, path);
  } catch (error) {
    if (!existsSync(path)) throw error;
  } finally {
    unlinkSync(draft);
  }
}
