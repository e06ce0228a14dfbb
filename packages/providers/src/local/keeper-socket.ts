import { linkSync, lstatSync, unlinkSync } from "node:fs";
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
export function secureSocket(instanceDir: string): boolean {
  if (isSocket(keeperSocket(instanceDir))) return true;
  if (!isSocket(bornSocket(instanceDir))) return false;
  try {
    // A link, because it fails where a name is taken: another server may have been faster, and something hostile run since.
    linkSync(bornSocket(instanceDir), keeperSocket(instanceDir));
    unlinkSync(bornSocket(instanceDir));
    return true;
  } catch (error) {
    // Moved by another call, or the directory is just being removed: the next look tells.
    if (isCode(error, "ENOENT", "EEXIST")) return false;
    throw error;
  }
}

/** Itself, not by a link. */
function isSocket(path: string): boolean {
  return lstatSync(path, { throwIfNoEntry: false })?.isSocket() ?? false;
}
