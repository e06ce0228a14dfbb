import { readdirSync, rmSync, statSync } from "node:fs";
import { join } from "node:path";

// The current one, and two for whoever has just switched a branch or has a server that launched nothing yet. One that
// did has its own copy, and each bundle is 110 MB.
const KEPT = 3;

/** Removes all but the bundles that were used last, of which the current one is always one. */
export function removeOldBundles(dir: string, current: string): void {
  const others = readdirSync(dir)
    .filter((name) => /^[0-9a-f]{16}$/.test(name) && name !== current)
    .map((name) => ({ path: join(dir, name), usedAt: lastUse(join(dir, name)) }))
    .sort((a, b) => b.usedAt - a.usedAt);
  for (const { path } of others.slice(KEPT - 1)) rmSync(path, { recursive: true, force: true });
}

function lastUse(bundle: string): number {
  return statSync(bundle, { throwIfNoEntry: false })?.mtimeMs ?? 0; // another build may have removed it
}
