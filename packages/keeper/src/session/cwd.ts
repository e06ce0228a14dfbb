import { readlinkSync, statSync } from "node:fs";
import { dirname } from "node:path";

const DELETED = " (deleted)";

/** Where a process is. `gone` if that directory was deleted, also if another one of its name exists now. */
export function cwdOf(pid: number): { path: string; gone: boolean } | undefined {
  try {
    const path = readlinkSync(`/proc/${pid}/cwd`);
    if (!path.endsWith(DELETED)) return { path, gone: false };
    // A directory may really be called so: then it is there, and its number of links says that it lives.
    if (statSync(`/proc/${pid}/cwd`).nlink > 0) return { path, gone: false };
    return { path: path.slice(0, -DELETED.length), gone: true };
  } catch {
    return undefined;
  }
}

/** The directory itself, if it exists, or the nearest one above it. */
export function nearestExisting(path: string): string {
  for (let at = path; ; at = dirname(at)) {
    if (at === "/" || statSync(at, { throwIfNoEntry: false })?.isDirectory() === true) return at;
  }
}
