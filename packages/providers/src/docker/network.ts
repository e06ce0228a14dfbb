import type { SandboxRef } from "@holdfast/core";
import { HoldfastError, type SandboxSpec } from "@holdfast/protocol";
import { ifUnlocked, withFileLock } from "../local/file-lock.ts";
import type { Layout } from "../local/layout.ts";
import type { DockerApi } from "./api.ts";
import { type Container, type Info, isPodman, type Network } from "./engine-types.ts";
import { INSTALLATION_LABEL, networkLabels } from "./labels.ts";
import { shortInstallation } from "./names.ts";
import type { UserIds } from "./user.ts";

/**
 * The sandboxes of an installation that have a network share one bridge, which keeps them apart from each other and
 * from everybody else's containers. It is there while one of them needs it: whoever launches holds a lock together with
 * all who launch, and whoever deletes removes it only if he can have that lock alone.
 */

interface Place {
  readonly api: DockerApi;
  readonly layout: Layout;
  readonly signal: AbortSignal;
}

/** No sandbox can be called so. */
const IN_USE = "the network is in use";
const MAKING = "the network is made";

export function networkName(installationId: string): string {
  return `hf-${shortInstallation(installationId)}`;
}

/** For the container's HostConfig. A rootless Podman gives each container a way out of its own. */
export function networkMode(
  { installationId }: SandboxRef,
  { network = "full", ids }: { network: SandboxSpec["network"]; ids: UserIds },
): string {
  if (network === "none") return "none";
  return ids === "mapped" ? "slirp4netns" : networkName(installationId);
}

/** For people, of `full`. */
export function networkDetail(info: Info): string {
  if (info.Rootless) return "out; not to this machine's loopback, nor to other sandboxes";
  const out = "out, and to services of this machine that listen on all its addresses";
  return isPodman(info)
    ? `${out}, and to other sandboxes of this installation: Podman does not keep them apart`
    : `${out}; not to other sandboxes`;
}

/** Nobody removes the network while `work` makes and starts a container on it. */
export function withNetwork<T>({ layout, signal }: Place, work: () => Promise<T>): Promise<T> {
  return withFileLock({ file: layout.locks, key: IN_USE, mode: "shared", signal }, work);
}

/** Makes the network if there is none and one is needed. Under a lock: Docker makes two of one name for two who ask at once. */
export async function ensureNetwork(
  { installationId }: SandboxRef,
  { api, layout, signal, info, network = "full" }: Place & { info: Info; network: SandboxSpec["network"] },
): Promise<void> {
  if (network === "none" || info.Rootless) return;
  const name = networkName(installationId);
  const found =
    (await find(api, name, signal)) ??
    (await withFileLock(
      { file: layout.locks, key: MAKING, mode: "alone", signal },
      async () => (await find(api, name, signal)) ?? (await make(api, { name, installationId, signal })),
    ));
  if (found === undefined || isOwn(found, installationId)) return;
  throw new HoldfastError("already_exists", `the network ${name} is somebody else's`, {
    hint: `It was not made by this installation, and was left alone: docker network inspect ${name}`,
    started: "no",
  });
}

/**
 * A stopped container holds on to the very network that it was made on, by its id, and a network of the same name may
 * have taken that one's place. It is put on the present one. May be called twice.
 */
export async function rejoinNetwork(
  { installationId }: SandboxRef,
  { Id, NetworkSettings }: Container,
  { api, signal, info, network = "full" }: Place & { info: Info; network: SandboxSpec["network"] },
): Promise<void> {
  // Podman goes by the name.
  if (network === "none" || isPodman(info)) return;
  const name = networkName(installationId);
  const present = await find(api, name, signal);
  const joined = NetworkSettings?.Networks?.[name]?.NetworkID;
  if (present === undefined || joined === present.Id) return;
  const path = `/networks/${name}`;
  const leave = { Container: Id, Force: true };
  // It may be on none any more: the next call is the one that counts.
  const expect = [403, 404, 409, 500];
  await api.request({ method: "POST", path: `${path}/disconnect`, json: leave, expect, signal });
  await api.request({ method: "POST", path: `${path}/connect`, json: { Container: Id }, signal });
}

/** Removes it unless somebody needs it; says what was seen. May be called twice. */
export async function removeNetwork({ installationId }: SandboxRef, place: Place): Promise<string> {
  const { api, layout, signal } = place;
  const name = networkName(installationId);
  const removed = await ifUnlocked({ file: layout.locks, key: IN_USE, mode: "alone" }, async () => {
    // By their label: another of that name, which somebody else made, is not ours to remove.
    const filters = JSON.stringify({ label: [`${INSTALLATION_LABEL}=${installationId}`] });
    const query = { filters };
    const ours = (await api.json<Network[]>({ method: "GET", path: "/networks", query, signal })) ?? [];
    const gone = await Promise.all(ours.map(({ Id }) => removeUnused(api, Id, signal)));
    return gone.every(Boolean);
  });
  return removed ? `the network ${name} does not exist` : `others use the network ${name}`;
}

/** Whether it is gone; a daemon does not remove one that a container is on. */
async function removeUnused(api: DockerApi, id: string, signal: AbortSignal): Promise<boolean> {
  const call = { method: "DELETE", path: `/networks/${id}`, expect: [403, 404, 409], signal } as const;
  const { status } = await api.request(call);
  return status < 400 || status === 404;
}

async function make(
  api: DockerApi,
  { name, installationId, signal }: { name: string; installationId: string; signal: AbortSignal },
): Promise<undefined> {
  const json = {
    Name: name,
    CheckDuplicate: true,
    Driver: "bridge",
    Labels: networkLabels(installationId),
    Options: { "com.docker.network.bridge.enable_icc": "false" },
  };
  await api.request({ method: "POST", path: "/networks/create", json, signal });
}

function find(api: DockerApi, name: string, signal: AbortSignal): Promise<Network | undefined> {
  return api.json<Network>({ method: "GET", path: `/networks/${name}`, expect: [404], signal });
}

function isOwn({ Labels }: Network, installationId: string): boolean {
  return Labels?.[INSTALLATION_LABEL] === installationId;
}
