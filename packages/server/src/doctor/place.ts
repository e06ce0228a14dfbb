import { accessSync, constants, existsSync, lstatSync, readFileSync, statfsSync, statSync } from "node:fs";
import { connect } from "node:net";
import { dirname, join } from "node:path";
import { type Check, defaultMinFreeDisk, diskShortage } from "@holdfast/core";
import type { Config } from "../config.ts";

/** Where everything is kept: whether we may write there, whether others may read, and whether there is room. */
export async function examinePlace(config: Config): Promise<Check[]> {
  const { dataDir } = config;
  return [checkDataDir(dataDir), checkDisk(config), checkToken(dataDir), await checkSocket(dataDir)];
}

function checkDataDir(dataDir: string): Check {
  const name = "data dir";
  const place = existingPartOf(dataDir);
  try {
    accessSync(place, constants.W_OK | constants.X_OK);
  } catch {
    const owner = statSync(place).uid;
    return {
      ...missing(
        name,
        `${place} may not be written: it belongs to user ${owner}, and we are ${process.getuid?.()}`,
      ),
      remedy: `Run it as that user, or give a data dir of your own: --data-dir DIR or HOLDFAST_DATA_DIR`,
    };
  }
  return found(name, place === dataDir ? dataDir : `${dataDir}, which is made at the first start`);
}

/** The same rule by which a server refuses another sandbox. */
function checkDisk({ dataDir, minFreeDiskPercent }: Config): Check {
  const name = "disk";
  const place = existingPartOf(dataDir);
  const { bsize, blocks, bavail, files, ffree } = statfsSync(place);
  const disk = { sizeBytes: bsize * blocks, freeBytes: bsize * bavail, inodes: files, freeInodes: ffree };
  const floor = { ...defaultMinFreeDisk, share: minFreeDiskPercent / 100 };
  const shortage = diskShortage(0, { slots: null, memoryBytes: 0, disk }, floor);
  if (shortage === undefined)
    return found(name, `${gibibytes(disk.freeBytes)} free of ${gibibytes(disk.sizeBytes)} at ${place}`);
  return {
    ...missing(name, `at ${place} ${shortage.text}, or no sandbox is started`),
    remedy:
      shortage.numbers.resource === "inodes"
        ? `Remove files that are not needed (df -i ${place} shows the count), or give a data dir on another file system: --data-dir DIR`
        : `Make room (df -h ${place} shows what there is), give a data dir on another file system (--data-dir DIR), or lower --min-free-disk`,
  };
}

/** The key to everything: for its owner's eyes alone. */
function checkToken(dataDir: string): Check {
  const name = "token";
  const path = join(dataDir, "token");
  if (process.env.HOLDFAST_TOKEN) return found(name, "HOLDFAST_TOKEN is set, and wins over the file");
  if (!existsSync(path)) return found(name, `${path} is made at the first start`);
  try {
    readFileSync(path);
  } catch {
    return {
      ...missing(name, `${path} may not be read: it belongs to user ${statSync(path).uid}`),
      remedy: "Be that user, or have the token given to you and set HOLDFAST_TOKEN to it",
    };
  }
  if ((statSync(path).mode & 0o077) === 0) return found(name, `${path}, for its owner alone`);
  return {
    ...missing(name, `${path} may be read by others on this machine`),
    required: false,
    remedy: `chmod 600 ${path}, and if somebody may have read it: holdfast token rotate`,
  };
}

async function checkSocket(dataDir: string): Promise<Check> {
  const name = "socket";
  const path = join(dataDir, "holdfast.sock");
  const facts = lstatSync(path, { throwIfNoEntry: false });
  if (facts === undefined) return found(name, `${path}: no server runs here`);
  if (!facts.isSocket()) return { ...missing(name, `${path} is no socket`), remedy: `Remove it: rm ${path}` };
  if ((facts.mode & 0o077) !== 0)
    return { ...missing(name, `${path} is open to others on this machine`), remedy: `chmod 600 ${path}` };
  return found(
    name,
    (await answers(path))
      ? `a server answers on ${path}`
      : `${path}: its server is gone, the next takes its place`,
  );
}

function answers(path: string): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(path);
    const end = (answered: boolean): void => {
      socket.destroy();
      resolve(answered);
    };
    socket.once("connect", () => end(true)).once("error", () => end(false));
  });
}

/** The part of a path that is there already. */
function existingPartOf(path: string): string {
  return existsSync(path) ? path : existingPartOf(dirname(path));
}

function found(name: string, detail: string): Check {
  return { name, ok: true, required: true, detail };
}

function missing(name: string, detail: string): Check {
  return { name, ok: false, required: true, detail };
}

function gibibytes(bytes: number): string {
  return `${(bytes / 1024 ** 3).toFixed(1)} GiB`;
}
