import {
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  utimesSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";

// The current one, and two for whoever has just switched a branch or has a server that launched nothing yet. One that
// did has its own copy, and each bundle is 110 MB.
const KEPT = 3;

/**
 * `dir/<hash>`, built by `build` unless it is there already, and from now on the one that `dir/current` names. Two that
 * build at a time do not disturb each other.
 */
export async function makeBundle(
  dir: string,
  hash: string,
  build: (draft: string) => Promise<void> | void,
): Promise<string> {
  const bundle = join(dir, hash);
  const isNew = !existsSync(bundle);
  if (isNew) {
    const draft = join(dir, `.${hash}.${process.pid}`);
    mkdirSync(draft, { recursive: true });
    try {
      await build(draft);
      moveInto(draft, bundle);
    } finally {
      rmSync(draft, { recursive: true, force: true });
    }
  }
  makeCurrent(dir, hash);
  if (isNew) removeOldBundles(dir, hash);
  return bundle;
}

/** Another build of the same hash may have been faster: its result is as good as ours. */
function moveInto(from: string, to: string): void {
  try {
    renameSync(from, to);
  } catch (error) {
    if (!existsSync(to)) throw error;
  }
}

function makeCurrent(dir: string, hash: string): void {
  const path = join(dir, "current");
  if (existsSync(path) && readFileSync(path, "utf8") === `${hash}\n`) return;
  utimesSync(join(dir, hash), new Date(), new Date()); // when it was last wanted
  const temporary = `${path}.${process.pid}`;
  writeFileSync(temporary, `${hash}\n`);
  renameSync(temporary, path);
}

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
