import { createHash } from "node:crypto";
import type { InstanceRef, LaunchPlan } from "@holdfast/core";
import type { Mount, SandboxSpec } from "@holdfast/protocol";
import { inside } from "../local/inside.ts";
import { bundleMount } from "./bundle-volume.ts";
import type { Doors } from "./doors.ts";
import type { Image } from "./engine-types.ts";
import { imageEnvironment } from "./image.ts";
import { keeperCommand, placeOfPart, type Reach } from "./inside.ts";
import { instanceLabels } from "./labels.ts";
import type { LimitsPlan } from "./limits.ts";
import { diskContainerName, diskParts, volumeName } from "./names.ts";
import { networkMode } from "./network.ts";
import { type Account, rootCapabilities, type UserIds } from "./user.ts";

export interface ContainerView {
  readonly ref: InstanceRef;
  readonly plan: LaunchPlan;
  readonly createdAt: number;
  /** As the spec says it. */
  readonly imageName: string;
  /** That name, or the id of an image which has a snapshot's own files, too. */
  readonly madeOf: string;
  readonly image: Image;
  readonly account: Account;
  readonly ids: UserIds;
  readonly engine: "docker" | "podman";
  /** Of the host, with their sources as they really are. */
  readonly hostMounts: readonly Mount[];
  /** Where the keeper's bundle is, and where it makes its socket, on the host. */
  readonly doors: Doors;
  readonly limits: LimitsPlan;
  readonly reach: Reach;
  /** The bundle itself: its name says what is in it. */
  readonly keeperBundle: string;
}

/** Shared memory of a browser or a database fits; a sandbox without a memory limit cannot fill the host's memory by it. */
const SHARED_MEMORY_BYTES = 512 * 1024 * 1024;
/** In memory, so for small things; programs that are built there must run. */
const TMP_MIB = 1024;

/** The whole request that makes the container: who it is, what it sees, what it may do, and the keeper as its first process. */
export function containerBody(view: ContainerView): Record<string, unknown> {
  const { ref, plan, account, imageName: image, madeOf, createdAt } = view;
  return {
    Image: madeOf,
    Labels: instanceLabels(ref, { ...plan, createdAt, spec: specHash(view), image }),
    Hostname: plan.hostname,
    User: `${account.uid}:${account.gid}`,
    WorkingDir: "/",
    ...insteadOfImage(view),
    HostConfig: {
      ...separation(view),
      ...view.limits.settings,
      Mounts: mounts(view),
      Tmpfs: tmpfs(view),
    },
  };
}

/** Everything that an image may start or change by itself: it gives files, and nothing that runs. */
function insteadOfImage({ ref, image, reach }: ContainerView): Record<string, unknown> {
  return {
    // By the one name that stays: later generations may live in it.
    Entrypoint: keeperCommand(diskContainerName(ref), reach),
    Cmd: [],
    // The image's are for the work, not for its keeper. Docker could take them away, Podman can only empty them.
    Env: Object.keys(imageEnvironment(image)).map((name) => `${name}=`),
    Healthcheck: { Test: ["NONE"] },
    StopSignal: "SIGTERM",
  };
}

function separation({ ref, plan: { spec }, account, ids }: ContainerView): Record<string, unknown> {
  return {
    CapDrop: ["ALL"],
    ...(account.uid === 0 && { CapAdd: rootCapabilities }),
    SecurityOpt: ["no-new-privileges"],
    ReadonlyRootfs: spec.readOnly ?? false,
    ...(spec.runtime !== undefined && { Runtime: spec.runtime }),
    // The user that runs a rootless Podman is root in its containers, unless another is to be that one.
    ...(ids === "mapped" &&
      account.uid !== 0 && { UsernsMode: `keep-id:uid=${account.uid},gid=${account.gid}` }),
    NetworkMode: networkMode(ref, { network: spec.network, ids }),
    IpcMode: "private",
    ShmSize: SHARED_MEMORY_BYTES,
    // The keeper reaps what is left without a parent, and nobody but us starts it again.
    Init: false,
    RestartPolicy: { Name: "no" },
    // For what a keeper says when it cannot start; the work's output goes to the keeper's own logs.
    LogConfig: { Type: "json-file", Config: { "max-size": "1m", "max-file": "1" } },
  };
}

/** With their sizes in MiB. */
export function placesInMemory(spec: SandboxSpec): Readonly<Record<string, number>> {
  return { "/tmp": TMP_MIB, ...spec.tmpfs };
}

function tmpfs({ plan: { spec }, account: { uid, gid }, engine }: ContainerView): Record<string, string> {
  const places = Object.entries(placesInMemory(spec));
  // It gets the mode of the directory below, once there is one, which on a read-only root may be any: so it is our
  // user's. Podman refuses that, and lets us make the directory (see settle-in.ts).
  const owner = engine === "docker" ? `,uid=${uid},gid=${gid}` : "";
  const options = `rw,exec,nosuid,nodev,mode=1777${owner}`;
  return Object.fromEntries(places.map(([place, mib]) => [place, `${options},size=${mib}m`]));
}

function mounts({ ref, doors, hostMounts, reach, keeperBundle }: ContainerView): unknown[] {
  return [
    ...diskParts.map((part) => ({
      Type: "volume",
      Source: volumeName(ref.sandboxId, part),
      Target: placeOfPart[part],
    })),
    ...(reach === "api"
      ? [bundleMount(keeperBundle, { readOnly: true })]
      : [
          { Type: "bind", Source: doors.bundle, Target: inside.bin, ReadOnly: true },
          { Type: "bind", Source: doors.run, Target: inside.run },
        ]),
    ...hostMounts.map(({ source, target, writable = false }) => ({
      ...{ Type: "bind", Source: source, Target: target, ReadOnly: !writable },
      // What is mounted there later, on the host or inside, stays on its side.
      BindOptions: { Propagation: "rprivate" },
    })),
  ];
}

/** Of what a container cannot change. Not of the environment: a hash of a short secret can be guessed. */
export function specHash({ imageName, plan, hostMounts, reach }: ContainerView): string {
  const { env: _, provider: __, network = "full", ...rest } = plan.spec;
  const all = { ...rest, image: imageName, network, mounts: hostMounts, ...(reach === "api" && { reach }) };
  const sorted = Object.entries(all).sort(([a], [b]) => a.localeCompare(b));
  return createHash("sha256").update(JSON.stringify(sorted)).digest("hex").slice(0, 16);
}
