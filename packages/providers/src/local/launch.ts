import { chmod, chown, mkdir, readFile, rename, unlink, writeFile } from "node:fs/promises";
import { connect } from "node:net";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import type { InstanceRef, LaunchPlan } from "@holdfast/core";
import { HoldfastError, type KeeperBoot } from "@holdfast/protocol";
import { isCode } from "./atomic-file.ts";
import { installBundle } from "./bundle.ts";
import { makeGroups, planLimits } from "./cgroup.ts";
import type { CgroupHost } from "./cgroup-host.ts";
import { type Disk, ensureDisk } from "./disk.ts";
import { generatedEtcFiles } from "./etc-files.ts";
import { isRoot } from "./host-user.ts";
import {
  draftDir,
  type Identity,
  instanceDir,
  nameOf,
  readIdentity,
  sameInstance,
  writeIdentity,
} from "./identity.ts";
import { baseEnvironment, inside } from "./inside.ts";
import { CLAIM, files, LOG, startLauncher } from "./launcher.ts";
import { type Layout, makeLayout } from "./layout.ts";
import { assertFullNetwork, blockedRoutes, nameserverOf } from "./network.ts";
import { findByName, type HostProcess, isAlive } from "./processes.ts";
import { exists, removeTree } from "./remove-tree.ts";
import { seccompProgram } from "./seccomp.ts";

export interface LaunchContext {
  readonly layout: Layout;
  readonly keeperBundle: string;
  readonly cgroups: CgroupHost;
}

/** A keeper answers some 50 ms after its start; a machine that swaps may need a hundred times that, and not more. */
const READY_TIMEOUT_MS = 30_000;
/** So long it is worth looking every millisecond. */
const USUAL_START_MS = 200;

/**
 * Everything that must not happen twice at a time: makes the disk, the instance's directory and its groups, then
 * starts the launcher, unless one was ever started for this instance.
 */
export async function begin(ref: InstanceRef, plan: LaunchPlan, context: LaunchContext): Promise<void> {
  const { layout } = context;
  const network = plan.spec.network ?? "full";
  if (network === "full") assertFullNetwork();
  await makeLayout(layout);
  const dir = instanceDir(layout, ref);
  assertOurs(await readIdentity(dir), ref);
  if (await exists(join(dir, CLAIM))) return;
  const limits = planLimits(nameOf(ref), plan.spec.limits, context.cgroups);
  const bundle = await installBundle(layout, context.keeperBundle);
  const disk = await ensureDisk(layout, ref);
  const cgroups = limits.groups.map((group) => group.dir);
  await makeInstanceDir(layout, { ref, uid: disk.uid, limits: limits.report, cgroups });
  await makeGroups(limits.groups);
  await writeInputs(dir, {
    disk,
    network,
    hostname: plan.hostname,
    boot: bootOf(ref, plan, limits.memoryDir),
  });
  const view = {
    name: nameOf(ref),
    hostname: plan.hostname,
    marker: JSON.stringify(ref),
    bundle,
    disk: disk.dir,
    instance: dir,
    network: network === "full" ? "inherited" : "none",
    memoryCgroup: limits.memoryDir,
  } as const;
  await startLauncher({ view, uid: disk.uid, network, cgroups, limitsPrefix: limits.prefix });
}

/** Returns once the keeper answers; throws once nothing is left that could become one. */
export async function untilReady(ref: InstanceRef, layout: Layout, signal: AbortSignal): Promise<void> {
  const dir = instanceDir(layout, ref);
  const socket = join(dir, "run/keeper.sock");
  const start = performance.now();
  let processes: HostProcess[] = [];
  while (!(await accepts(socket))) {
    signal.throwIfAborted();
    if (!processes.some(isAlive)) processes = await findByName(nameOf(ref));
    // Once more after the look: the keeper may have come up in between.
    if (processes.length === 0 && !(await accepts(socket))) {
      throw await launchFailed(dir, "it ended before its keeper answered");
    }
    const elapsedMs = performance.now() - start;
    if (elapsedMs > READY_TIMEOUT_MS) throw await launchFailed(dir, "its keeper did not answer in time");
    await sleep(elapsedMs < USUAL_START_MS ? 1 : 20, undefined, { signal });
  }
  await unlinkIfThere(join(dir, files.boot));
}

function assertOurs(identity: Identity | undefined, ref: InstanceRef): void {
  if (identity === undefined || sameInstance(identity.ref, ref)) return;
  throw new HoldfastError("already_exists", `${nameOf(ref)} is already the name of another instance`, {
    hint: "Launch the next generation; the other instance was left alone.",
    details: { holder: identity.ref },
    started: "no",
  });
}

/** With its identity or not at all: one that was interrupted before has another name, and is made anew. */
async function makeInstanceDir(layout: Layout, identity: Identity): Promise<void> {
  const dir = instanceDir(layout, identity.ref);
  if (await exists(dir)) return;
  const draft = draftDir(layout, identity.ref);
  await removeTree(draft);
  await mkdir(join(draft, "tmp"), { recursive: true });
  for (const own of ["run", "tmp", "tmp/tmp", "tmp/var"]) {
    await mkdir(join(draft, own), { recursive: true });
    if (isRoot()) await chown(join(draft, own), identity.uid, identity.uid);
  }
  await chmod(join(draft, "run"), 0o700);
  await chmod(join(draft, "tmp"), 0o700);
  for (const shared of ["tmp/tmp", "tmp/var"]) await chmod(join(draft, shared), 0o1777);
  await mkdir(join(draft, "etc"), { mode: 0o755 });
  await writeIdentity(draft, identity);
  await chmod(draft, 0o711);
  await rename(draft, dir);
}

interface Inputs {
  readonly disk: Disk;
  readonly network: "none" | "full";
  readonly hostname: string;
  readonly boot: KeeperBoot;
}

async function writeInputs(dir: string, { disk, network, hostname, boot }: Inputs): Promise<void> {
  const etc = generatedEtcFiles({ hostname, nameserver: nameserverOf(network) });
  for (const [file, text] of Object.entries(etc))
    await writeFile(join(dir, "etc", file), text, { mode: 0o644 });
  await writeFile(join(dir, files.seccomp), seccompProgram(), { mode: 0o644 });
  if (network === "full") await writeFile(join(dir, files.routes), blockedRoutes(), { mode: 0o644 });
  // The secret is in it: for the sandbox's user alone, who opens it, and only until the keeper has read it.
  await unlinkIfThere(join(dir, files.boot));
  await writeFile(join(dir, files.boot), JSON.stringify(boot), { mode: 0o400 });
  if (isRoot()) await chown(join(dir, files.boot), disk.uid, disk.uid);
}

function bootOf(ref: InstanceRef, plan: LaunchPlan, memoryDir: string | undefined): KeeperBoot {
  return {
    secret: plan.secret,
    sandboxId: ref.sandboxId,
    instanceId: ref.instanceId,
    generation: ref.generation,
    socketPath: inside.socket,
    stateDir: inside.state,
    env: { ...baseEnvironment, ...plan.spec.env },
    cwd: inside.workspace,
    ...(memoryDir !== undefined && { memoryCgroupDir: inside.memoryCgroup }),
  };
}

function accepts(path: string): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(path);
    const answer = (accepted: boolean): void => {
      socket.destroy();
      resolve(accepted);
    };
    socket.once("connect", () => answer(true)).once("error", () => answer(false));
  });
}

async function launchFailed(dir: string, what: string): Promise<HoldfastError> {
  const lines = (await readIfThere(join(dir, LOG))).trim().split("\n").slice(-10);
  const said = lines.join("\n").slice(-2000);
  return new HoldfastError(
    "launch_failed",
    `the instance could not be started: ${what}${said && `:\n${said}`}`,
    {
      hint: hintFor(said),
      details: { log: join(dir, LOG) },
    },
  );
}

function hintFor(said: string): string {
  if (/External interface not usable|No (external )?routable interface/i.test(said)) {
    return 'This machine has no route to any network. Connect it, or create the sandbox with network: "none".';
  }
  return 'Run "holdfast doctor": it tries what a sandbox needs and says what is missing.';
}

async function readIfThere(path: string): Promise<string> {
  try {
    return await readFile(path, "utf8");
  } catch (error) {
    if (isCode(error, "ENOENT")) return "";
    throw error;
  }
}

async function unlinkIfThere(path: string): Promise<void> {
  try {
    await unlink(path);
  } catch (error) {
    if (!isCode(error, "ENOENT")) throw error;
  }
}
