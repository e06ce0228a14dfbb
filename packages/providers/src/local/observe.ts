import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import type { InstanceRef, Observation } from "@holdfast/core";
import { isCode } from "./atomic-file.ts";
import { type Identity, instanceDir, nameOf, readIdentity, sameInstance } from "./identity.ts";
import { keeperSocket } from "./keeper-socket.ts";
import type { Layout } from "./layout.ts";
import { findByName, type HostProcess, isKeeper, readProcess } from "./processes.ts";

/** How long a launcher or the remains of an instance are given to become a keeper, or nothing, before we say what is there. */
const SETTLE_MS = 500;

/** What is true of an instance now. */
export async function observeInstance(
  ref: InstanceRef,
  options: { layout: Layout; signal: AbortSignal },
): Promise<Observation> {
  const dir = instanceDir(options.layout, ref);
  const name = nameOf(ref);
  const identity = await readIdentity(dir);
  if (identity !== undefined && !sameInstance(identity.ref, ref)) {
    return { state: "absent", detail: `${name} is the name of another instance: ${identity.ref.instanceId}` };
  }
  const deadline = performance.now() + SETTLE_MS;
  for (;;) {
    const keeper = await findKeeper(dir, name, identity);
    if (keeper !== undefined) return running(dir, identity, describeKeeper(keeper));
    const others = (await findByName(name)).map(({ pid }) => pid);
    if (others.length === 0) return { state: "absent", detail: `no process on this host is named ${name}` };
    // Not absent: it may be about to start, and a second one would be one too many.
    if (performance.now() > deadline)
      return running(dir, identity, `no keeper yet, but pids ${others.join(", ")}`);
    await sleep(5, undefined, { signal: options.signal });
  }
}

/** By the pid noted at an earlier look if it is still the same process, else by a look at every process. */
export async function findKeeper(
  dir: string,
  name: string,
  identity: Identity | undefined,
): Promise<HostProcess | undefined> {
  const isOurs = (found: HostProcess): boolean =>
    isKeeper(found) && found.argv.at(-1) === name && (identity === undefined || found.uid === identity.uid);
  const noted = await readNote(dir);
  const known = noted === undefined ? undefined : readProcess(noted);
  if (known !== undefined && isOurs(known)) return known;
  const found = (await findByName(name)).find(isOurs);
  if (found !== undefined && identity !== undefined) await writeNote(dir, found.pid);
  return found;
}

function running(dir: string, identity: Identity | undefined, detail: string): Observation {
  return {
    state: "running",
    keeper: { kind: "unix", path: keeperSocket(dir) },
    limits: identity?.limits ?? { state: "none", detail: "unknown: the instance's directory is gone" },
    detail,
  };
}

function describeKeeper({ pid, uid, startTime }: HostProcess): string {
  return `keeper is pid ${pid} of user ${uid}, started ${startTime} ticks after boot`;
}

/** Only a shortcut: what it says is checked against the process itself. */
async function readNote(dir: string): Promise<number | undefined> {
  try {
    return Number.parseInt(await readFile(join(dir, "keeper.pid"), "utf8"), 10);
  } catch (error) {
    if (isCode(error, "ENOENT")) return undefined;
    throw error;
  }
}

async function writeNote(dir: string, pid: number): Promise<void> {
  try {
    await writeFile(join(dir, "keeper.pid"), String(pid), { mode: 0o600 });
  } catch (error) {
    if (!isCode(error, "ENOENT")) throw error; // the directory is just being removed
  }
}
