import { readFileSync, statSync } from "node:fs";

/**
 * Which data dir it is, by device and inode: a rename keeps them, a copy has others. Everything that we start carries
 * it, so that a server on a copied data dir, which knows all the names, never takes the original's instances for its
 * own. `undefined` if there is no such directory.
 */
export function placeOf(dataDir: string): string | undefined {
  const found = statSync(dataDir, { bigint: true, throwIfNoEntry: false });
  return found && `${found.dev}-${found.ino}`;
}

/** Another one after every start of the machine: what was launched under a different one cannot run any more. */
export function readBootId(): string {
  return readFileSync("/proc/sys/kernel/random/boot_id", "utf8").trim();
}
