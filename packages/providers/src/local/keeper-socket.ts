import { link, lstat, unlink } from "node:fs/promises";
import { join } from "node:path";
import { isCode } from "./atomic-file.ts";

/**
 * The keeper makes its socket in `run/`, where the work inside can put anything in its place: a server of its own, or
 * a link to a socket of the host that the server may open and the work may not. So the socket is moved to a directory
 * that is not seen inside, before the keeper is admitted and anything hostile runs. It works on under its new name.
 */
export function keeperSocket(instanceDir: string): string {
  return join(instanceDir, SOCKET_DIR, "keeper.sock");
}

/** In the instance's directory, for the server alone. */
export const SOCKET_DIR = "socket";

/** Where the keeper makes it. Worth nothing once something runs inside. */
export function bornSocket(instanceDir: string): string {
  return join(instanceDir, "run/keeper.sock");
}

/** Whether the keeper's socket is in its safe place now. May be called twice: nothing replaces one that is there. */
export async function secureSocket(instanceDir: string): Promise<boolean> {
  if (await isSocket(keeperSocket(instanceDir))) return true;
  if (!(await isSocket(bornSocket(instanceDir)))) return false;
  try {
    // A link, because it fails where a name is taken: another server may have been faster, and something hostile run since.
    await link(bornSocket(instanceDir), keeperSocket(instanceDir));
    await unlink(bornSocket(instanceDir));
    return true;
  } catch (error) {
    // Moved by another call, or the directory is just being removed: the next look tells.
    if (isCode(error, "ENOENT", "EEXIST")) return false;
    throw error;
  }
}

/** Itself, not by a link. */
async function isSocket(path: string): Promise<boolean> {
  try {
    return (await lstat(path)).isSocket();
  } catch (error) {
    if (isCode(error, "ENOENT")) return false;
    throw error;
  }
}
