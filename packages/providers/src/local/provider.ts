import type { Capabilities, Check, InstanceRef, Provider, SandboxRef } from "@holdfast/core";
import { HoldfastError } from "@holdfast/protocol";
import { installBundle } from "./bundle.ts";
import { type CgroupHost, findCgroupHost } from "./cgroup-host.ts";
import { discoverAll, instancesOf } from "./discover.ts";
import { deleteDisk } from "./disk.ts";
import { nameOf } from "./identity.ts";
import { KeyedLock } from "./keyed-lock.ts";
import { beginLaunch } from "./launch.ts";
import { type Layout, layoutOf } from "./layout.ts";
import { fullNetworkProblem } from "./network.ts";
import { observeInstance } from "./observe.ts";
import { probeHost } from "./probe.ts";
import { untilReady } from "./ready.ts";
import { stopInstance } from "./stop.ts";

export interface LocalProviderOptions {
  /** As root it must be reachable for other users: not below root's home. */
  readonly dataDir: string;
  /** A directory named by its content, with `ld.so`, `lib/` and `keeper`. */
  readonly keeperBundle: string;
}

/** Instances in namespaces of this machine's kernel, made by bubblewrap. */
export function createLocalProvider(options: LocalProviderOptions): Provider {
  const layout = layoutOf(options.dataDir);
  const locks = new KeyedLock();
  const cgroups = once(findCgroupHost);
  const bundleLock = new KeyedLock();
  const installedBundle = () => bundleLock.run("bundle", () => installBundle(layout, options.keeperBundle));
  let capabilities: Capabilities | undefined;
  return {
    kind: "local",
    get capabilities() {
      return capabilities ?? capabilitiesOf(undefined);
    },
    async probe(): Promise<readonly Check[]> {
      const host = await cgroups();
      capabilities = capabilitiesOf(host);
      return probeHost({ layout, keeperBundle: options.keeperBundle, cgroups: host });
    },
    async launch(ref, plan, signal) {
      signal.throwIfAborted();
      const context = { layout, installedBundle, cgroups: await cgroups() };
      // One lock for the sandbox: its disk is made here, and removed under the same one.
      const launcher = await locks.run(ref.sandboxId, () => beginLaunch(ref, plan, context));
      await untilReady(ref, { layout, launcher: launcher?.exited, signal });
    },
    observe: (ref, signal) => observeInstance(ref, { layout, signal }),
    async stop(ref, mode, signal) {
      const options = { mode, layout, signal, cgroups: await cgroups() };
      return locks.run(ref.sandboxId, () => stopInstance(ref, options));
    },
    removeDisk: (ref, signal) =>
      locks.run(ref.sandboxId, async () => {
        signal.throwIfAborted();
        await assertNoInstance(ref, layout);
        return deleteDisk(layout, ref);
      }),
    async discover(installationId, signal) {
      signal.throwIfAborted();
      return discoverAll(installationId, layout);
    },
  };
}

function capabilitiesOf(host: CgroupHost | undefined): Capabilities {
  return {
    persistentDisk: true,
    // A look by name is a look at this machine's own processes: it misses nothing that was started before it.
    settleMs: 0,
    networks: fullNetworkProblem() === undefined ? ["none", "full"] : ["none"],
    limits: {
      enforced: host !== undefined && host.kind !== "unavailable",
      detail: host?.detail ?? "not probed yet",
    },
  };
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
