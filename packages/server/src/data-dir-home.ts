import { existsSync, readFileSync, realpathSync, statSync } from "node:fs";
import { hostname } from "node:os";
import { HoldfastError } from "@holdfast/protocol";

/**
 * Where a data dir is at home: noted when it is first used, compared at every start. A copy knows all the names of the
 * original's instances and would sweep them, so a server works on it only if somebody says that it is no copy.
 */
interface Home {
  readonly machineId: string;
  readonly dev: string;
  readonly ino: string;
  readonly path: string;
}

const MACHINE_ID = "/etc/machine-id";

/** As it is to be recorded. The directory must be there. */
export function homeOf(path: string): string {
  const { dev, ino } = statSync(path, { bigint: true });
  const home: Home = { machineId: machineId(), dev: String(dev), ino: String(ino), path: realpathSync(path) };
  return JSON.stringify(home);
}

/**
 * Whether the data dir is where it was when `recorded` was written (`same`), or somebody has said that it was moved
 * (`moved`): then the present home is to be recorded. Throws if it is a copy, or may be one.
 */
export function checkHome(options: { recorded: string; present: string; moved: boolean }): "same" | "moved" {
  const recorded = parse(options.recorded);
  const present = parse(options.present);
  if (isSame(recorded, present)) return "same";
  if (originalIsThere(recorded, present)) throw copied(recorded, present);
  if (options.moved) return "moved";
  throw unconfirmed(recorded, present);
}

/** A rename keeps the inode. Disks may be numbered anew at the machine's next start, which changes neither path nor inode. */
function isSame(recorded: Home, present: Home): boolean {
  if (recorded.machineId !== present.machineId || recorded.ino !== present.ino) return false;
  return recorded.dev === present.dev || recorded.path === present.path;
}

/** On this machine only: what another one has at that path we cannot know. */
function originalIsThere(recorded: Home, present: Home): boolean {
  if (recorded.machineId !== present.machineId) return false;
  const found = statSync(recorded.path, { bigint: true, throwIfNoEntry: false });
  return found !== undefined && String(found.ino) === recorded.ino && String(found.dev) === recorded.dev;
}

function copied(recorded: Home, present: Home): HoldfastError {
  return new HoldfastError(
    "wrong_state",
    `${present.path} is a copy of ${recorded.path}, which is still there; a server on it would take the original's instances for its own`,
    {
      hint: `serve ${recorded.path} itself, or give a new, empty directory: --data-dir DIR. To go on with the copy, stop the original's server and remove ${recorded.path} first`,
      details: { recorded, present },
    },
  );
}

function unconfirmed(recorded: Home, present: Home): HoldfastError {
  const from = recorded.machineId === present.machineId ? "on this machine" : "on another machine";
  return new HoldfastError(
    "wrong_state",
    `${present.path} was last served as ${recorded.path} ${from}: it was moved, or it is a copy`,
    {
      hint: "if it was moved and nothing uses the original any more, confirm with --data-dir-moved; if it is a copy, give a new, empty directory: --data-dir DIR",
      details: { recorded, present },
    },
  );
}

function machineId(): string {
  const id = existsSync(MACHINE_ID) ? readFileSync(MACHINE_ID, "utf8").trim() : "";
  return id === "" ? hostname() : id;
}

function parse(home: string): Home {
  try {
    const { machineId, dev, ino, path } = JSON.parse(home) as Record<keyof Home, unknown>;
    return { machineId: String(machineId), dev: String(dev), ino: String(ino), path: String(path) };
  } catch (cause) {
    throw new HoldfastError("internal", "where the data dir was at home cannot be read from the store", {
      cause,
      hint: "restore the database from a backup, or give a new, empty directory: --data-dir DIR",
    });
  }
}
