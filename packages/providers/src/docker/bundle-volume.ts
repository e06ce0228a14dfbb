import { randomUUID } from "node:crypto";
import { readdir, stat } from "node:fs/promises";
import { basename, join } from "node:path";
import { inside } from "../local/inside.ts";
import type { DockerApi } from "./api.ts";
import type { ListedContainer, VolumeList } from "./engine-types.ts";
import { removeContainer } from "./remove-container.ts";
import { TAR_END, tarHeader, tarOf, tarPadding } from "./tar.ts";

/**
 * Where the daemon does not see our files, the keeper's bundle is in a volume of its own: sent once for all containers,
 * by a container that is never started, and only read by the others. The last file that is sent says that all are there.
 */

const COMPLETE = "complete";
const KEEPER_LABEL = "holdfast.keeper";
const SENDER_LABEL = "holdfast.keeper-sender";
/** 100 MB, over whatever line. */
const SEND_TIMEOUT_MS = 600_000;

/** As a mount of a container; made by the daemon if there is none. */
export function bundleMount(bundle: string, { readOnly }: { readOnly: boolean }): Record<string, unknown> {
  const VolumeOptions = { NoCopy: true, Labels: { [KEEPER_LABEL]: basename(bundle) } };
  return {
    ...{ Type: "volume", Source: volumeOf(bundle), Target: inside.bin, ReadOnly: readOnly, VolumeOptions },
  };
}

interface Sending {
  readonly api: DockerApi;
  readonly bundle: string;
  /** One that mounts the volume. */
  readonly container: string;
  /** Any image. */
  readonly imageId: string;
  readonly signal: AbortSignal;
}

/** Whoever gives up waiting leaves the others theirs. */
const underWay = new Map<string, Promise<void>>();

/** Makes sure that the bundle is in its volume. */
export async function ensureBundle(sending: Sending): Promise<void> {
  const { api, bundle, container, signal } = sending;
  if (await isComplete(api, container, signal)) return;
  const volume = volumeOf(bundle);
  const sent = underWay.get(volume) ?? send(sending).finally(() => underWay.delete(volume));
  underWay.set(volume, sent);
  await Promise.race([sent, aborted(signal)]);
}

async function isComplete(api: DockerApi, container: string, signal: AbortSignal): Promise<boolean> {
  const query = { path: `${inside.bin}/${COMPLETE}` };
  const call = {
    method: "GET",
    path: `/containers/${container}/archive`,
    query,
    expect: [404],
    signal,
  } as const;
  return (await api.request(call)).status === 200;
}

async function send({ api, bundle, imageId }: Sending): Promise<void> {
  const signal = AbortSignal.timeout(SEND_TIMEOUT_MS);
  const name = `hf-keeper-${randomUUID().slice(0, 8)}`;
  const json = {
    Image: imageId,
    Labels: { [SENDER_LABEL]: basename(bundle) },
    Entrypoint: ["/never-started"],
    HostConfig: { NetworkMode: "none", Mounts: [bundleMount(bundle, { readOnly: false })] },
  };
  await api.request({ method: "POST", path: "/containers/create", query: { name }, json, signal });
  try {
    const put = {
      method: "PUT",
      path: `/containers/${name}/archive`,
      query: { path: inside.bin },
      signal,
    } as const;
    await api.request({ ...put, tar: tarOfBundle(bundle), timeoutMs: SEND_TIMEOUT_MS });
    const now = Date.now();
    await api.request({
      ...put,
      tar: tarOf([{ path: COMPLETE, uid: 0, mode: 0o444, content: "" }], { now }),
    });
  } finally {
    const undo = AbortSignal.timeout(30_000);
    const query = { force: "1" };
    await api.request({ method: "DELETE", path: `/containers/${name}`, query, expect: [404], signal: undo });
  }
  await removeOthers(api, bundle, signal);
}

/** What a server left that was killed while it sent. A younger one may be another server's, which is just sending. */
export async function removeAbandonedSenders(
  api: DockerApi,
  { now, signal }: { now: number; signal: AbortSignal },
): Promise<void> {
  const query = { all: "1", filters: JSON.stringify({ label: [SENDER_LABEL] }) };
  const senders = await api.json<ListedContainer[]>({
    method: "GET",
    path: "/containers/json",
    query,
    signal,
  });
  for (const { Id, Created } of senders ?? []) {
    if (Created * 1000 < now - SEND_TIMEOUT_MS) await removeContainer(api, Id, signal);
  }
}

/** Bundles of older releases go when no container uses them: the daemon refuses until then. */
async function removeOthers(api: DockerApi, bundle: string, signal: AbortSignal): Promise<void> {
  const query = { filters: JSON.stringify({ label: [KEEPER_LABEL] }) };
  const list = await api.json<VolumeList>({ method: "GET", path: "/volumes", query, signal });
  for (const { Name } of list?.Volumes ?? []) {
    if (Name === volumeOf(bundle)) continue;
    await api.request({ method: "DELETE", path: `/volumes/${Name}`, expect: [404, 409], signal });
  }
}

function volumeOf(bundle: string): string {
  return `hf-keeper-${basename(bundle)}`;
}

function tarOfBundle(bundle: string): ReadableStream<Uint8Array<ArrayBuffer>> {
  const pieces = piecesOf(bundle, "");
  return new ReadableStream({
    async pull(controller) {
      const { done, value } = await pieces.next();
      if (done) controller.close();
      else controller.enqueue(Uint8Array.from(value));
    },
  });
}

async function* piecesOf(dir: string, prefix: string): AsyncGenerator<Uint8Array> {
  const now = Date.now();
  for (const name of await readdir(dir)) {
    const path = `${prefix}${name}`;
    const { size, isDirectory } = await factsOf(join(dir, name));
    if (isDirectory) {
      yield tarHeader({ path, uid: 0, mode: 0o755 }, { size: 0, now });
      yield* piecesOf(join(dir, name), `${path}/`);
    } else {
      yield tarHeader({ path, uid: 0, mode: 0o755, content: "" }, { size, now });
      yield* Bun.file(join(dir, name)).stream();
      yield tarPadding(size);
    }
  }
  if (prefix === "") yield TAR_END;
}

async function factsOf(path: string): Promise<{ size: number; isDirectory: boolean }> {
  const facts = await stat(path);
  return { size: facts.size, isDirectory: facts.isDirectory() };
}

function aborted(signal: AbortSignal): Promise<never> {
  return new Promise((_, reject) => {
    if (signal.aborted) reject(signal.reason);
    else signal.addEventListener("abort", () => reject(signal.reason), { once: true });
  });
}
