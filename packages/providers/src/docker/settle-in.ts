import { type AccountFile, accountFiles, withAccount } from "./account.ts";
import type { DockerApi } from "./api.ts";
import { placeOfPart } from "./inside.ts";
import { diskParts } from "./names.ts";
import { firstFileIn, type TarEntry, tarOf } from "./tar.ts";

/**
 * Makes a container that is not started yet a home for our user. A new volume is root's, and nothing in the container
 * is root to change that: but what the daemon unpacks is whoever's the archive says. Every launch says it again, so
 * that work which has locked its own home does not lock out the next instance.
 */
export async function settleIn(
  api: DockerApi,
  container: string,
  { uid, now, signal }: { uid: number; now: number; signal: AbortSignal },
): Promise<void> {
  const places = diskParts.map((part) => ({ path: relative(placeOfPart[part]), uid, mode: 0o700 }));
  const accounts = await Promise.all(
    accountFiles.map(async (file): Promise<TarEntry[]> => {
      const content = withAccount(file, await read(api, container, { file, signal }), uid);
      return content === undefined ? [] : [{ path: relative(file), uid: 0, mode: 0o644, content }];
    }),
  );
  await api.request({
    method: "PUT",
    path: `/containers/${container}/archive`,
    query: { path: "/" },
    tar: tarOf([...places, ...accounts.flat()], { now }),
    signal,
  });
}

/** Empty if there is none. */
async function read(
  api: DockerApi,
  container: string,
  { file, signal }: { file: AccountFile; signal: AbortSignal },
): Promise<string> {
  const path = `/containers/${container}/archive`;
  const call = { method: "GET", path, query: { path: file }, expect: [404], signal } as const;
  const { status, bytes } = await api.request(call);
  return status === 404 ? "" : firstFileIn(bytes);
}

function relative(path: string): string {
  return path.slice(1);
}
