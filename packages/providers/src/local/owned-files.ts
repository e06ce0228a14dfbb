import { chmod, chown, mkdir, writeFile } from "node:fs/promises";
import { isRoot } from "./host-user.ts";

/** Who may do what, exactly, whatever umask the server was started with; and whose it is, which only root can say. */
export interface Ownership {
  readonly mode: number;
  readonly uid?: number;
}

/** May be called twice. */
export async function makeDir(path: string, ownership: Ownership): Promise<void> {
  await mkdir(path, { recursive: true, mode: ownership.mode });
  await give(path, ownership);
}

/** For a reader that is started afterwards; never wider than asked for, not even for a moment. */
export async function writeOwned(
  path: string,
  content: string | Uint8Array,
  ownership: Ownership,
): Promise<void> {
  await writeFile(path, content, { mode: ownership.mode });
  await give(path, ownership);
}

async function give(path: string, { mode, uid }: Ownership): Promise<void> {
  await chmod(path, mode);
  if (uid !== undefined && isRoot()) await chown(path, uid, uid);
}
