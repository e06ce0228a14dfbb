import type { DockerApi } from "./api.ts";
import { placeOfPart } from "./inside.ts";
import { diskParts } from "./names.ts";
import { tarOf } from "./tar.ts";

/**
 * A new volume is root's, and nothing in the container is root to change that: but what the daemon unpacks into a
 * container that is not started yet is whoever's the archive says. Every launch says it again, so that work which has
 * locked its own home does not lock out the next instance.
 */
export async function giveDisk(
  api: DockerApi,
  container: string,
  { uid, now }: { uid: number; now: number },
): Promise<void> {
  const entries = diskParts.map((part) => ({ path: placeOfPart[part].slice(1), uid, mode: 0o700 }));
  await api.request({
    method: "PUT",
    path: `/containers/${container}/archive`,
    query: { path: "/" },
    tar: tarOf(entries, { now }),
    signal: new AbortController().signal,
  });
}
