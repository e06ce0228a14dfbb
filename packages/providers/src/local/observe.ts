import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import type { InstanceRef, Observation } from "@holdfast/core";
import { isCode } from "./atomic-file.ts";
import { findHere, lookAt } from "./here.ts";
import { type Holder, holderOf, mayBe } from "./holder.ts";
import { type Identity, instanceDir } from "./identity.ts";
import { keeperSocket } from "./keeper-socket.ts";
import type { Layout } from "./layout.ts";
import { nameOf } from "./name.ts";
import { readBootId } from "./place.ts";
import { childrenOf, type HostProcess, isKeeper, readProcess } from "./processes.ts";

/** How long a launcher or the remains of an instance are given to become a keeper, or nothing, before we say what is there. */
const SETTLE_MS = 500;

/** What is true of an instance now. */
export async function observeInstance(
  ref: InstanceRef,
  options: { layout: Layout; signal: AbortSignal },
): Promise<Observation> {
  const { layout, signal } = options;
  const holder = await holderOf(layout, ref);
  if (!mayBe(holder, ref)) return absent(holder, `${nameOf(ref)} is the name of another instance`);
  const deadline = performance.now() + SETTLE_MS;
  for (;;) {
    const keeper = await findKeeper(layout, ref, identityOf(holder));
    if (keeper !== undefined) return running(layout, ref, holder, describeKeeper(keeper));
    const others = (await findHere(layout, ref)).map(({ process }) => process.pid);
    if (others.length === 0) return absent(holder, `no process on this host is named ${nameOf(ref)}`);
    // Not absent: it may be about to start, and a second one would be one too many.
    if (performance.now() > deadline)
      return running(layout, ref, holder, `no keeper yet, but pids ${others.join(", ")}`);
    await sleep(5, undefined, { signal });
  }
}

/** By the pid noted at an earlier look if it is still the same process, else by a look at every process. */
export async function findKeeper(
  layout: Layout,
  ref: InstanceRef,
  identity: Identity | undefined,
): Promise<HostProcess | undefined> {
  const isOurs = (found: HostProcess): boolean =>
    isKeeper(found) && (identity === undefined || found.uid === identity.uid);
  const noted = await readNote(layout, ref);
  const known = noted === undefined ? undefined : readProcess(noted);
  const here = known && isOurs(known) ? lookAt(layout, known) : undefined;
  if (here !== undefined && nameOf(here.named) === nameOf(ref)) return known;
  const found = (await findHere(layout, ref)).map(({ process }) => process).find(isOurs);
  if (found !== undefined && identity !== undefined) await writeNote(layout, ref, found.pid);
  return found;
}

/** Right after its launch a keeper is below its launcher: then no look at every process is needed to find it. */
export async function noteKeeperBelow(launcher: number, layout: Layout, ref: InstanceRef): Promise<void> {
  for (let pids = [launcher]; pids.length > 0; pids = pids.flatMap(childrenOf)) {
    const keeper = pids.map(readProcess).find((one) => one !== undefined && isKeeper(one));
    if (keeper !== undefined) return writeNote(layout, ref, keeper.pid);
  }
}

/** Locally a look at the processes is authoritative: what it does not see has ended, or was never started. */
export function absent(holder: Holder, detail: string): Observation {
  const bootId = identityOf(holder)?.bootId ?? null;
  if (bootId === null || bootId === readBootId()) return { state: "absent", proof: "exited", detail };
  const reset = `this machine has started anew since its launch (boot id ${bootId} then)`;
  return { state: "absent", proof: "host_reset", detail: `${detail}; ${reset}` };
}

export function identityOf(holder: Holder): Identity | undefined {
  return holder.kind === "known" ? holder.identity : undefined;
}

function running(layout: Layout, ref: InstanceRef, holder: Holder, detail: string): Observation {
  return {
    state: "running",
    keeper: { kind: "unix", path: keeperSocket(instanceDir(layout, ref)) },
    limits: identityOf(holder)?.limits ?? {
      state: "none",
      detail: "unknown: what the instance's directory said of it is gone",
    },
    detail,
  };
}

function describeKeeper({ pid, uid, startTime }: HostProcess): string {
  return `keeper is pid ${pid} of user ${uid}, started ${startTime} ticks after boot`;
}

/** Only a shortcut: what it says is checked against the process itself. */
async function readNote(layout: Layout, ref: InstanceRef): Promise<number | undefined> {
  try {
    return Number.parseInt(await readFile(noteFile(layout, ref), "utf8"), 10);
  } catch (error) {
    if (isCode(error, "ENOENT", "ENOTDIR")) return undefined;
    throw error;
  }
}

/** Without it every look takes longer, and is none the worse: a full disk or a removed directory is no failure. */
async function writeNote(layout: Layout, ref: InstanceRef, pid: number): Promise<void> {
  try {
    await writeFile(noteFile(layout, ref), String(pid), { mode: 0o600 });
  } catch (error) {
    if (!isCode(error, "ENOENT", "ENOTDIR", "ENOSPC", "EROFS")) throw error;
  }
}

function noteFile(layout: Layout, ref: InstanceRef): string {
  return join(instanceDir(layout, ref), "keeper.pid");
}
