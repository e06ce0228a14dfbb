import { rename } from "node:fs/promises";
import type { InstanceRef, Observation } from "@holdfast/core";
import { HoldfastError } from "@holdfast/protocol";
import { groupsOf, removeGroups } from "./cgroup.ts";
import type { CgroupHost } from "./cgroup-host.ts";
import { findHere } from "./here.ts";
import { type Holder, holderOf, mayBe } from "./holder.ts";
import { draftDir, instanceDir, readInhabitant } from "./identity.ts";
import type { Layout } from "./layout.ts";
import { nameOf } from "./name.ts";
import { absent, findKeeper, identityOf } from "./observe.ts";
import type { HostProcess } from "./processes.ts";
import { removeTree } from "./remove-tree.ts";
import { signalProcess, waitUntilGone } from "./signal-process.ts";

/** What the keeper has for ending its work and writing its records, which takes it 5 s at worst; then it is killed. */
const GRACE_MS = 6_000;
const ASK_AGAIN_MS = 250;
/** A killed process is gone within milliseconds, unless it hangs in the kernel (a dead network disk): then it is said. */
const KILL_TIMEOUT_MS = 5_000;

/** Ends an instance, proves it, and only then removes what belonged to it. May be called twice. */
export async function stopInstance(
  ref: InstanceRef,
  options: { mode: "graceful" | "force"; layout: Layout; cgroups: CgroupHost; signal: AbortSignal },
): Promise<Observation> {
  const { layout, signal } = options;
  const holder = await holderOf(layout, ref);
  if (!mayBe(holder, ref))
    return absent(holder, `${nameOf(ref)} is the name of another instance, which was left alone`);
  const keeper = await findKeeper(layout, ref, identityOf(holder));
  if (keeper !== undefined && options.mode === "graceful") await askToEnd(keeper, signal);
  await killAll(layout, ref, keeper, signal);
  const groups = groupsOf(holder, { layout, named: ref, host: options.cgroups });
  await removeGroups(groups, AbortSignal.any([signal, AbortSignal.timeout(KILL_TIMEOUT_MS)]));
  await removeInstanceDir(layout, ref);
  return absent(holder, evidence(nameOf(ref), keeper, holder));
}

/**
 * Asked more than once: to the first process of a namespace the kernel delivers only signals that it handles, and a
 * keeper that has just begun to listen may not handle any yet.
 */
async function askToEnd(keeper: HostProcess, signal: AbortSignal): Promise<void> {
  for (let askedMs = 0; askedMs < GRACE_MS; askedMs += ASK_AGAIN_MS) {
    signalProcess(keeper, "SIGTERM");
    if (await waitUntilGone([keeper], { timeoutMs: ASK_AGAIN_MS, signal })) return;
  }
}

/** Takes its name away first, so that nobody ever finds half of one under it. */
async function removeInstanceDir(layout: Layout, ref: InstanceRef): Promise<void> {
  const draft = draftDir(layout, ref);
  await removeTree(draft);
  // A directory in which nobody ever wrote who lives there was not made by us.
  if ((await readInhabitant(layout, ref)).kind === "nobody") return;
  await rename(instanceDir(layout, ref), draft);
  await removeTree(draft);
}

/**
 * The keeper is the first process of its pid namespace: the kernel ends all others there before it is gone itself.
 * Outside are pasta and bubblewrap, which end by themselves when it does, or a launcher on its way.
 */
async function killAll(
  layout: Layout,
  ref: InstanceRef,
  keeper: HostProcess | undefined,
  signal: AbortSignal,
): Promise<void> {
  if (keeper !== undefined) await kill([keeper], signal);
  // Twice nothing: a process that was just being forked by one seen in the first look shows up in the second.
  for (let clean = 0; clean < 2; ) {
    const left = (await findHere(layout, ref)).map(({ process }) => process);
    clean = left.length === 0 ? clean + 1 : 0;
    await kill(left, signal);
  }
}

async function kill(targets: readonly HostProcess[], signal: AbortSignal): Promise<void> {
  for (const target of targets) signalProcess(target, "SIGKILL");
  if (await waitUntilGone(targets, { timeoutMs: KILL_TIMEOUT_MS, signal })) return;
  const pids = targets.map(({ pid }) => pid);
  throw new HoldfastError(
    "unavailable",
    `the processes ${pids.join(", ")} were killed but are not gone yet`,
    {
      hint: "They wait in the kernel, mostly for a disk or a network file system. It will be tried again.",
      details: { pids },
    },
  );
}

function evidence(name: string, keeper: HostProcess | undefined, holder: Holder): string {
  if (keeper !== undefined) {
    return `keeper pid ${keeper.pid} (started ${keeper.startTime} ticks after boot) is gone, and so is every process named ${name}`;
  }
  const before = holder.kind === "nobody" ? "it was not there" : "its keeper had already ended";
  return `no process on this host is named ${name}; ${before}`;
}
