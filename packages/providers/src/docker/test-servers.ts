import { writeFileSync } from "node:fs";
import { join } from "node:path";
import type { InstanceRef, Observation } from "@holdfast/core";
import type { SandboxSpec } from "@holdfast/protocol";
import { instanceDir } from "../local/identity.ts";
import { type Layout, layoutOf } from "../local/layout.ts";
import { type Call, DockerApi } from "./api.ts";
import { beginLaunch } from "./create.ts";
import type { Info } from "./engine-types.ts";
import { ImageAccounts } from "./image-accounts.ts";
import { containerName } from "./names.ts";
import { untilReady } from "./ready.ts";
import { SnapshotImages } from "./snapshot-images.ts";
import { stopInstance } from "./stop.ts";
import type { DockerMachine } from "./test-machine.ts";

/** Servers that do what a healthy one of this release does not. */

/** Launches an instance of which nothing but the name can be read: our label, and none that says who it is. */
export async function launchUnmarked(machine: DockerMachine, ref: InstanceRef): Promise<InstanceRef> {
  const api = new UnmarkedApi(machine.daemon.host);
  const layout = await beginWith(api, machine, ref);
  await untilReady(ref, { api, layout, signal: AbortSignal.timeout(20_000) });
  writeFileSync(join(instanceDir(layout, ref), "identity.json"), "");
  return { ...ref, instanceId: `legacy:${containerName(ref)}` };
}

class UnmarkedApi extends DockerApi {
  override json<T>(call: Call): Promise<T | undefined> {
    if (call.path !== "/containers/create") return super.json(call);
    return super.json({ ...call, json: { ...(call.json as object), Labels: { "holdfast.schema": "0" } } });
  }
}

/** Kills an instance that ends by itself in the very moment before. */
export function killTooLate(machine: DockerMachine, ref: InstanceRef): Promise<Observation> {
  const api = new LateApi(machine.daemon.host, () => machine.crash(ref));
  const layout = layoutOf(join(machine.dataDir, "docker"));
  return stopInstance(ref, { api, layout, mode: "force", signal: AbortSignal.timeout(20_000) });
}

class LateApi extends DockerApi {
  readonly #before: () => Promise<void>;

  constructor(host: string, before: () => Promise<void>) {
    super(host);
    this.#before = before;
  }

  override async request(call: Call): ReturnType<DockerApi["request"]> {
    if (call.path.endsWith("/kill")) await this.#before();
    return super.request(call);
  }
}

/** Launches as a server that dies before its request number `requests` to change something. */
export async function launchAndDie(
  machine: DockerMachine,
  ref: InstanceRef,
  requests: number,
  spec: SandboxSpec = {},
): Promise<void> {
  const api = new DyingApi(machine.daemon.host, requests);
  await beginWith(api, machine, ref, spec).catch((error: unknown) => {
    if (!api.died) throw error;
  });
}

/** The same, of a stop. */
export async function stopAndDie(machine: DockerMachine, ref: InstanceRef, requests: number): Promise<void> {
  const api = new DyingApi(machine.daemon.host, requests);
  const layout = layoutOf(join(machine.dataDir, "docker"));
  const signal = AbortSignal.timeout(20_000);
  await stopInstance(ref, { api, layout, mode: "graceful", signal }).catch((error: unknown) => {
    if (!api.died) throw error;
  });
}

class DyingApi extends DockerApi {
  died = false;
  #left: number;

  constructor(host: string, requests: number) {
    super(host);
    this.#left = requests;
  }

  override request(call: Call): ReturnType<DockerApi["request"]> {
    if (call.method !== "GET" && --this.#left <= 0) this.died = true;
    return this.died ? Promise.reject(new Error("the server died")) : super.request(call);
  }
}

async function beginWith(
  api: DockerApi,
  machine: DockerMachine,
  ref: InstanceRef,
  spec: SandboxSpec = {},
): Promise<Layout> {
  const layout = layoutOf(join(machine.dataDir, "docker"));
  const signal = AbortSignal.timeout(20_000);
  const info = await api.json<Info>({ method: "GET", path: "/info", signal });
  if (info === undefined) throw new Error("the daemon says nothing about itself");
  const { bundle: keeperBundle, daemon } = machine;
  const context = {
    api,
    layout,
    info,
    signal,
    keeperBundle,
    defaultImage: daemon.images.debian,
    accounts: new ImageAccounts(),
    images: new SnapshotImages({ api, layout }),
    mounts: { allowed: [], dataDir: machine.dataDir },
    now: Date.now(),
    reach: machine.reach,
    restoring: new Map(),
  };
  await beginLaunch(ref, machine.plan({ network: "none", ...spec }), context);
  return layout;
}
