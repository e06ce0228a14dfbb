import { existsSync, readFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { HoldfastError } from "@holdfast/protocol";

const buildDir = resolve(import.meta.dir, "../../../build/keeper");

/** The folder of the keeper that was built last. */
export function currentKeeperBundle(): string {
  const pointer = join(buildDir, "current");
  const bundle = existsSync(pointer) ? join(buildDir, readFileSync(pointer, "utf8").trim()) : undefined;
  if (bundle !== undefined && existsSync(join(bundle, "keeper"))) return bundle;
  throw new HoldfastError("unavailable", "the keeper is not built yet", {
    hint: "run `npm start`, which builds it, or `npm run setup`",
  });
}
