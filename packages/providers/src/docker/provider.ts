import { homedir } from "node:os";
import { join } from "node:path";
import type { InstanceRef, LaunchPlan, Provider, RestoreProgress, SandboxRef } from "@holdfast/core";
import { HoldfastError } from "@holdfast/protocol";
import { type Layout, layoutOf } from "../local/layout.ts";
import { SandboxLocks } from "../local/sandbox-locks.ts";
import { createSnapshotVault, removeUnused } from "../local/snapshot-vault.ts";
import { namingStorage } from "../local/storage.ts";
import type { AllowedMount } from "../mounts.ts";
import { tellingOf } from "../restore-progress.ts";
import { DockerApi } from "./api.ts";
import { removeAbandonedSenders } from "./bundle-volume.ts";
import { capabilitiesOf } from "./capabilities.ts";
import { measureCapacity } from "./capacity.ts";
import { copyDisk, letGo } from "./copy-disk.ts";
import { beginLaunch } from "./create.ts";
import { discoverAll, instancesOf } from "./discover.ts";
import { deleteDisk } from "./disk.ts";
import { removeDoors } from "./doors.ts";
import { type Info, isPodman } from "./engine-types.ts";
import { refusalOf } from "./errors.ts";
import { Events } from "./events.ts";
import { FarDisk } from "./far-disk.ts";
import { forgetFilled } from "./fill-disk.ts";
import { findImage } from "./image.ts";
import { ImageAccounts } from "./image-accounts.ts";
import type { Reach } from "./inside.ts";
import { containerName } from "./names.ts";
import { removeNetwork, withNetwork } from "./network.ts";
import { observeInstance } from "./observe.ts";
import { canPause, pauseInstance, resumeInstance } from "./pause.ts";
import { probeDocker } from "./probe.ts";
import { Pulls } from "./pull.ts";
import { type Decided, decideReach } from "./reach.ts";
import { untilReady } from "./ready.ts";
import { SnapshotImages } from "./snapshot-images.ts";
import { stopInstance } from "./stop.ts";
import { removeAbandoned, TRIAL_TIMEOUT_MS } from "./trial.ts";
import { recall, remember } from "./trial-memory.ts";

export interface DockerProviderOptions {
  /** The run directories of instances are in `docker/` there. */
  readonly dataDir: string;
  /** A directory named by its content, with `ld.so`, `lib/` and `keeper`. */
  readonly keeperBundle: string;
  /** As in DOCKER_HOST. */
  readonly host?: string | undefined;
  /** As in DOCKER_CERT_PATH, if the daemon is to be spoken to with TLS. */
  readonly certPath?: string | undefined;
  /** As in DOCKER_CONFIG: what `docker login` keeps is read from there. */
  readonly configDir?: string | undefined;
  /** How keepers are reached, as an earlier trial found; the next one decides anew. Default: by files. */
  readonly reach?: Reach | undefined;
  /** For sandboxes that do not name one. */
  readonly defaultImage?: string | undefined;
  /** Whether a probe launches an instance also where that worked before. */
  readonly tryAgain?: boolean | undefined;
  /** What of this machine sandboxes may see; without it, nothing. */
  readonly allowedMounts?: readonly AllowedMount[] | undefined;
}

const DEFAULT_HOST = "unix:///var/run/docker.sock";
/** Bash, coreutils, perl and apt, and nothing that has to be explained. */
const DEFAULT_IMAGE = "debian:bookworm";
/** Instances in containers of a Docker daemon. Several servers may share a data dir. */
export function createDockerProvider(options: DockerProviderOptions): Provider {
  const { dataDir, keeperBundle, host = DEFAULT_HOST, defaultImage = DEFAULT_IMAGE, certPath } = options;
  const { configDir = join(homedir(), ".docker") } = options;
  const api = new DockerApi(host, { certPath, runDir: join(dataDir, "docker/ssh") });
  const pulls = new Pulls({ api, configDir });
  const layout = layoutOf(join(dataDir, "docker"));
  const locks = new SandboxLocks(layout);
  const accounts = new ImageAccounts();
  const images = new SnapshotImages({ api, layout });
  const farDisk = new FarDisk(api);
  const restoring = new Map<string, RestoreProgress>();
  const mounts = { allowed: options.allowedMounts ?? [], dataDir };
  let known: Info | undefined;
  const askDaemon = async (signal: AbortSignal): Promise<Info> => {
    known = await api.json<Info>({ method: "GET", path: "/info", signal });
    if (known !== undefined) return known;
    throw new HoldfastError("unavailable", "Docker says nothing about itself");
  };
  const events = new Events({ api, askDaemon });
  // What a daemon can do does not change while it runs.
  const info = async (signal: AbortSignal): Promise<Info> => known ?? (await askDaemon(signal));
  const disks = () => ({ dataDir, root: known?.DockerRootDir ?? dataDir });
  // One lock for the sandbox: its disk is made under it, and removed under the same one.
  const alone = <T>(ref: SandboxRef, signal: AbortSignal, work: () => Promise<T>): Promise<T> =>
    namingDisks(disks(), () => locks.run(ref.sandboxId, signal, work));

  let reach = options.reach ?? "files";
  const launch = async (
    ref: InstanceRef,
    plan: LaunchPlan,
    how: { signal: AbortSignal; reach: Reach },
  ): Promise<void> => {
    const { signal } = how;
    const machine = { api, layout, keeperBundle, defaultImage, accounts, images, mounts, restoring };
    const context = { ...machine, ...how, info: await info(signal), now: Date.now() };
    const look = () => restoring.get(ref.sandboxId);
    const begin = () => withNetwork(context, () => beginLaunch(ref, plan, context));
    await tellingOf(plan, look, () => alone(ref, signal, begin));
    await untilReady(ref, { api, layout, signal });
  };

  const decide = (): Promise<Decided> => {
    const as = (way: Reach): Provider => ({
      ...provider,
      launch: (ref, plan, signal) => launch(ref, plan, { signal, reach: way }),
    });
    return decideReach(api, { now: Date.now(), as, lookAround: (signal) => farDisk.measure(signal) });
  };

  const pausing: Pick<Provider, "pause" | "resume"> = {
    pause: (ref, signal) => alone(ref, signal, () => pauseInstance(ref, { api, layout, signal })),
    resume: (ref, signal) => alone(ref, signal, () => resumeInstance(ref, { api, layout, signal })),
  };
  // Podman hears of it from a helper, which on some machines does not.
  const tellsOom = (): boolean => known === undefined || !isPodman(known);
  const isPausing = (): boolean => known === undefined || canPause(known).possible;

  const provider: Provider = {
    kind: "docker",
    get capabilities() {
      // Their paths are ours: what is there on another machine, its operator did not allow.
      return capabilitiesOf(known, reach === "files" ? mounts.allowed : []);
    },
    probe: () =>
      probeDocker({
        ...{ host, certPath, keeperBundle, image: defaultImage },
        askDaemon: () => askDaemon(soon()),
        hasImage: async () => (await findImage(api, defaultImage, soon())) !== undefined,
        tryLaunch: async () => {
          const tried = { layout, keeperBundle, info: await info(soon()) };
          const before = options.tryAgain ? undefined : await recall(tried);
          const decided = before ?? (await decide());
          if (before === undefined) await remember(tried, decided);
          else await removeAbandoned(provider, Date.now(), soon());
          reach = decided.reach;
          if (reach === "api") await removeAbandonedSenders(api, { now: Date.now(), signal: soon() });
          return { how: describeReach(decided), isRecalled: before !== undefined };
        },
      }),
    prepare: (spec, signal) => namingDisks(disks(), () => pulls.prepare(spec.image ?? defaultImage, signal)),
    launch: (ref, plan, signal) => launch(ref, plan, { signal, reach }),
    observe: (ref, signal) =>
      events.listening(
        observeInstance(ref, { api, layout, signal, silence: events.lastSilence, tellsOom: tellsOom() }),
      ),
    stop: (ref, mode, signal) => alone(ref, signal, () => stopInstance(ref, { api, layout, mode, signal })),
    get pause() {
      return isPausing() ? pausing.pause : undefined;
    },
    get resume() {
      return isPausing() ? pausing.resume : undefined;
    },
    removeDisk: (ref, signal) =>
      alone(ref, signal, async () => {
        await assertNoInstance(ref, { api, layout, signal });
        const seen = await deleteDisk(ref, { api, layout, signal });
        if (seen.state === "absent") {
          await forgetFilled(layout, ref);
          await removeDoors(layout, ref);
          // It may have been the last that was made from a snapshot; if that cannot be seen now, it is looked at again.
          await removeUnused({ layout, locks, elsewhere: images }, signal).catch(() => undefined);
        }
        const network = await removeNetwork(ref, { api, layout, signal });
        return { ...seen, detail: `${seen.detail}; ${network}` };
      }),
    discover: (signal) => discoverAll({ api, layout, signal }),
    watch: (onChange, signal) => events.watch(onChange, signal),
    capacity: async (signal) =>
      measureCapacity(await askDaemon(signal), reach === "api" ? () => farDisk.measure(signal) : undefined),
    snapshots: createSnapshotVault({
      layout,
      locks,
      copyDisk: async (of, draft, options) =>
        copyDisk(of, draft, { ...options, api, layout, images, info: await info(options.signal) }),
      letGo: (draft) => letGo(draft, { api }),
      elsewhere: images,
    }),
  };
  return provider;
}

function soon(): AbortSignal {
  return AbortSignal.timeout(TRIAL_TIMEOUT_MS);
}

function describeReach({ reach, because }: Decided): string {
  if (reach === "files") return "its keeper is reached by a socket in the data dir";
  return `its keeper is reached by the daemon's API, because by files it is not: ${because}`;
}

async function assertNoInstance(
  ref: SandboxRef,
  look: { api: DockerApi; layout: Layout; signal: AbortSignal },
): Promise<void> {
  const instances = await instancesOf(ref, look);
  if (instances.length === 0) return;
  throw new HoldfastError("wrong_state", "cannot remove the disk: an instance of the sandbox still exists", {
    hint: "Stop the instance first.",
    details: { instances: instances.map(containerName) },
  });
}

/** A failure of a file system, of ours or of the daemon's, becomes `host_storage_unusable`. */
async function namingDisks<T>(
  { dataDir, root }: { dataDir: string; root: string },
  work: () => Promise<T>,
): Promise<T> {
  try {
    return await work();
  } catch (error) {
    const place = refusalOf(error) === undefined ? dataDir : root;
    return namingStorage(place, () => Promise.reject(error));
  }
}
