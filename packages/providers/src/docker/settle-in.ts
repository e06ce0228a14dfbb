import { basename } from "node:path";
import { type AccountTexts, accountFiles, withAccount } from "./account.ts";
import type { DockerApi } from "./api.ts";
import { placeOfPart } from "./inside.ts";
import { diskParts } from "./names.ts";
import { type TarEntry, tarOf } from "./tar.ts";
import type { Account } from "./user.ts";

export interface Settling {
  readonly account: Account;
  /** The image's lists of users, where ours is to be added. */
  readonly texts: AccountTexts | undefined;
  /** Places in memory. They get the mode of the directory below, once there is one. */
  readonly inMemory: readonly string[];
  /** Whether the daemon refuses to unpack anything but into volumes. */
  readonly volumesOnly: boolean;
  readonly now: number;
  readonly signal: AbortSignal;
}

/**
 * Makes a container that is not started yet a home for our user. A new volume is root's, and nothing in the container
 * is root to change that: but what the daemon unpacks is whoever's the archive says. Every launch says it again, so
 * that work which has locked its own home does not lock out the next instance.
 */
export async function settleIn(api: DockerApi, container: string, settling: Settling): Promise<void> {
  const { account, texts, volumesOnly, inMemory } = settling;
  const { uid, gid } = account;
  const places = diskParts.map((part) => ({ place: placeOfPart[part], uid, gid, mode: 0o700 }));
  if (!volumesOnly) {
    const entries = [
      ...places.map(({ place, ...owner }) => ({ ...owner, path: relative(place) })),
      ...inMemory.map((place) => ({ path: relative(place), uid: 0, mode: 0o1777 })),
      ...accountEntries(texts, account),
    ];
    return unpack(api, container, { at: "/", entries }, settling);
  }
  // An entry for the volume itself: the daemon passes over one that is called "." where it unpacks.
  const unpacked = places.map(({ place, ...owner }) =>
    unpack(api, container, { at: place, entries: [{ ...owner, path: `../${basename(place)}` }] }, settling),
  );
  await Promise.all(unpacked);
}

function accountEntries(texts: AccountTexts | undefined, account: Account): TarEntry[] {
  if (texts === undefined) return [];
  return accountFiles.flatMap((file) => {
    const content = withAccount(file, texts[file], account);
    return content === undefined ? [] : [{ path: relative(file), uid: 0, gid: 0, mode: 0o644, content }];
  });
}

async function unpack(
  api: DockerApi,
  container: string,
  { at, entries }: { at: string; entries: readonly TarEntry[] },
  { now, signal }: Settling,
): Promise<void> {
  await api.request({
    method: "PUT",
    path: `/containers/${container}/archive`,
    query: { path: at },
    tar: tarOf(entries, { now }),
    signal,
  });
}

function relative(path: string): string {
  return path.slice(1);
}
