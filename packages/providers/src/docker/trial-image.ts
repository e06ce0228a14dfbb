import { randomUUID } from "node:crypto";
import type { DockerApi } from "./api.ts";
import { tarOf } from "./tar.ts";

/** Of a server that was killed in the middle; a younger one may be another server's, which is just trying. */
const ABANDONED_MS = 600_000;
/** Podman gives every image that it is sent the same tag: so each trial's has a name of its own. */
const PREFIX = "holdfast/probe-";
const OURS = /(^|\/)holdfast\/probe-[0-9a-f]{8}:latest$/;

/** An image with nothing in it, which is all that a keeper needs: a trial must not wait for one from far away. */
export async function withTrialImage<T>(
  api: DockerApi,
  { now, signal }: { now: number; signal: AbortSignal },
  work: (image: string) => Promise<T>,
): Promise<T> {
  await removeAbandoned(api, now, signal);
  const repo = `${PREFIX}${randomUUID().slice(0, 8)}`;
  await api.request({
    ...{ method: "POST", path: "/images/create", query: { fromSrc: "-", repo, tag: "latest" }, signal },
    tar: tarOf([{ path: "tmp", uid: 0, mode: 0o1777 }], { now }),
  });
  try {
    return await work(`${repo}:latest`);
  } finally {
    await remove(api, `${repo}:latest`, AbortSignal.timeout(20_000));
  }
}

async function removeAbandoned(api: DockerApi, now: number, signal: AbortSignal): Promise<void> {
  const query = { filters: JSON.stringify({ reference: [`${PREFIX}*`] }) };
  type Listed = { RepoTags: readonly string[] | null; Created: number };
  const images = (await api.json<Listed[]>({ method: "GET", path: "/images/json", query, signal })) ?? [];
  for (const { RepoTags, Created } of images) {
    if (Created * 1000 > now - ABANDONED_MS) continue;
    // Looked at once more: what an engine lists by a filter that it does not know is not ours.
    for (const name of RepoTags ?? []) if (OURS.test(name)) await remove(api, name, signal);
  }
}

async function remove(api: DockerApi, name: string, signal: AbortSignal): Promise<void> {
  await api.request({ method: "DELETE", path: `/images/${name}`, expect: [404, 409], signal });
}
