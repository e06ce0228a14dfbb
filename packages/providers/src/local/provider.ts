import {
  type Capabilities,
  type Check,
  type InstanceRef,
  type Provider,
  plainCapabilities,
  type SandboxRef,
} from "@holdfast/core";
import { HoldfastError, type SandboxSpec } from "@holdfast/protocol";
import { type AllowedMount, printAllowed } from "../mounts.ts";
import { tellingOf } from "../restore-progress.ts";
import { measureCapacity } from "./capacity.ts";
import { NO_DISK_LIMIT } from "./cgroup.ts";
import { type CgroupHost, findCgroupHost } from "./cgroup-host.ts";
import { copyDisk } from "./copy-disk.ts";
import { discoverAll, instancesOf } from "./discover.ts";
import { deleteDisk } from "./disk.ts";
import { beginLaunch } from "./launch.ts";
import { type Layout, layoutOf } from "./layout.ts";
import { nameOf } from "./name.ts";
import { assertFullNetwork, fullNetworkProblem } from "./network.ts";
import { noteKeeperBelow, observeInstance } from "./observe.ts";
import { probeHost } from "./probe.ts";
import { untilReady } from "./ready.ts";
import { Restores } from "./restores.ts";
import { SandboxLocks } from "./sandbox-locks.ts";
import { SharedFiles } from "./shared-files.ts";
import { createSnapshotVault } from "./snapshot-vault.ts";
import { stopInstance } from "./stop.ts";
import { namingStorage } from "./storage.ts";

export interface LocalProviderOptions {
  /** As root it must be reachable for other users: not below root's home. */
  readonly dataDir: string;
  /** A directory named by its content, with `ld.so`, `lib/` and `keeper`. */
  readonly keeperBundle: string;
  /** What of this machine sandboxes may see beside its programs; without it, nothing. */
  readonly allowedMounts?: readonly AllowedMount[] | undefined;
}

/** Instances in namespaces of this machine's kernel, made by bubblewrap. Several servers may share a data dir. */
export function createLocalProvider(options: LocalProviderOptions): Provider {
  const { dataDir, keeperBundle, allowedMounts = [] } = options;
  const layout = layoutOf(dataDir);
  const locks = new SandboxLocks(layout);
  const cgroups = once(findCgroupHost);
  const shared = new SharedFiles(layout);
  const restores = new Restores({ layout, locks });
  let capabilities: Capabilities | undefined;
  // One lock for the sandbox: its disk is made under it, and removed under the same one.
  const alone = <T>(ref: SandboxRef, signal: AbortSignal, work: () => Promise<T>): Promise<T> =>
    namingStorage(dataDir, () => locks.run(ref.sandboxId, signal, work));
  return {
    kind: "local",
    get capabilities() {
      return capabilities ?? capabilitiesOf(undefined, allowedMounts);
    },
    async probe(): Promise<readonly Check[]> {
      const host = await cgroups();
      capabilities = capabilitiesOf(host, allowedMounts);
      return probeHost({ layout, keeperBundle, cgroups: host });
    },
    async launch(ref, plan, signal) {
      // Before anything is made.
      assertSupported(plan.spec);
      const network = plan.spec.network ?? "full";
      if (network === "full") assertFullNetwork();
      const { fromSnapshot } = plan;
      if (fromSnapshot !== undefined) {
        const look = () => restores.progress(ref);
        await tellingOf(plan, look, () => restores.until(ref, fromSnapshot, signal));
      }
      const machine = { layout, keeperBundle, allowedMounts, shared, cgroups: await cgroups() };
      const context = { ...machine, signal, now: Date.now() };
      const launcher = await alone(ref, signal, () => beginLaunch(ref, plan, context));
      await untilReady(ref, { layout, launcher: launcher?.exited, network, signal });
      if (launcher !== undefined) await noteKeeperBelow(launcher.pid, layout, ref);
    },
    observe: (ref, signal) => observeInstance(ref, { layout, signal }),
    async stop(ref, mode, signal) {
      await restores.cancel(ref);
      const options = { mode, layout, signal, cgroups: await cgroups() };
      return alone(ref, signal, () => stopInstance(ref, options));
    },
    async removeDisk(ref, signal) {
      await restores.cancel(ref);
      return alone(ref, signal, async () => {
        await assertNoInstance(ref, layout);
        return deleteDisk(layout, ref);
      });
    },
    async discover(signal) {
      signal.throwIfAborted();
      return discoverAll(layout);
    },
    async capacity(signal) {
      signal.throwIfAborted();
      return measureCapacity(dataDir, cgroups);
    },
    snapshots: createSnapshotVault({
      layout,
      locks,
      copyDisk: async (of, { dir }, options) => {
        await copyDisk(layout, of, dir, options);
        return [];
      },
    }),
  };
}

function capabilitiesOf(host: CgroupHost | undefined, allowedMounts: readonly AllowedMount[]): Capabilities {
  return {
    ...plainCapabilities,
    // A look by name is a look at this machine's own processes: it misses nothing that was started before it.
    settleMs: 0,
    networks: fullNetworkProblem() === undefined ? ["none", "full"] : ["none"],
    networkDetail: "out; not to this machine, nor to other sandboxes",
    limits: {
      enforced: host !== undefined && host.kind !== "unavailable",
      detail: host?.detail ?? "not probed yet",
      disk: { enforced: false, detail: NO_DISK_LIMIT },
    },
    // It always is: nothing but the workspace, the home directory and the places for temporary files can be written.
    readOnly: true,
    tmpfs: true,
    mounts: allowedMounts.map(printAllowed),
  };
}

function assertSupported({ image, user, runtime }: SandboxSpec): void {
  if (image !== undefined) {
    const hint =
      "Leave out `image` to use this machine's own programs, or choose a provider that has images, such as docker.";
    throw unsupported(`the local provider has no images: it cannot start from ${image}`, hint);
  }
  if (user !== undefined) {
    throw unsupported(
      `the local provider has one user for all work: it cannot run as ${user}`,
      "Leave out `user`.",
    );
  }
  if (runtime !== undefined) {
    throw unsupported(`the local provider has no runtime ${runtime}`, "Leave out `runtime`.");
  }
}

function unsupported(message: string, hint: string): HoldfastError {
  return new HoldfastError("unsupported", message, { hint, started: "no" });
}

async function assertNoInstance(ref: SandboxRef, layout: Layout): Promise<void> {
  const instances: InstanceRef[] = await instancesOf(ref, layout);
  if (instances.length === 0) return;
  throw new HoldfastError("wrong_state", "cannot remove the disk: an instance of the sandbox still exists", {
    hint: "Stop the instance first.",
    details: { instances: instances.map(nameOf) },
  });
}

/** A failure is not remembered: the next call tries again. */
function once<T>(find: () => Promise<T>): () => Promise<T> {
  let found: Promise<T> | undefined;
  return () => {
    found ??= find().catch((error: unknown) => {
      found = undefined;
      throw error;
    });
    return found;
  };
}
