import { readFile, rename } from "node:fs/promises";
import { join } from "node:path";
import type { InstanceRef } from "@holdfast/core";
import type { KeeperBoot } from "@holdfast/protocol";
import { isCode, writeDurably } from "../local/atomic-file.ts";
import { draftDir, type Identity, instanceDir, readInhabitant, writeIdentity } from "../local/identity.ts";
import { SOCKET_DIR } from "../local/keeper-socket.ts";
import type { Layout } from "../local/layout.ts";
import { sameInstance } from "../local/marker.ts";
import { makeDir, writeOwned } from "../local/owned-files.ts";
import { removeTree } from "../local/remove-tree.ts";
import { BOOT_FILE } from "./inside.ts";

/**
 * An instance's directory on the host: `identity.json`, `run/` (bound into the container, where the keeper makes its
 * socket), `socket/` (where the socket is moved to, and which is not seen inside), and `started`.
 */

/**
 * There before the container is started, with when it had last been started before: what was started once under an
 * identity is not started again.
 */
const STARTED = "started";

/**
 * With its identity or not at all: one that was interrupted before has another name, and is made anew. Gives the
 * identity that is there then, which may be of an earlier call.
 */
export async function makeRunDir(
  layout: Layout,
  ref: InstanceRef,
  identify: () => Promise<Identity>,
): Promise<Identity> {
  const dir = instanceDir(layout, ref);
  const there = await identityOf(layout, ref);
  if (there !== undefined) return there;
  const identity = await identify();
  const draft = draftDir(layout, identity.ref);
  await removeTree(draft);
  // Closed to others: in `run/` root of a container could leave programs that make whoever starts them the host's root.
  makeDir(draft, { mode: 0o700 });
  makeDir(join(draft, SOCKET_DIR), { mode: 0o700 });
  makeDir(join(draft, "run"), { mode: 0o700, uid: identity.uid });
  await writeIdentity(draft, identity);
  await rename(draft, dir);
  return identity;
}

/** The secret is in it: for the container's user alone, and only until the keeper has read it. */
export async function writeBoot(dir: string, boot: KeeperBoot, uid: number): Promise<void> {
  const file = join(dir, "run", BOOT_FILE);
  await removeTree(file);
  writeOwned(file, JSON.stringify(boot), { mode: 0o400, uid });
}

/** `before`: when the container had last been started until then, in the daemon's words. */
export function markStarted(dir: string, before: string): Promise<void> {
  return writeDurably(join(dir, STARTED), before);
}

/** When the container had last been started before this instance's own start; `undefined` if there was no such start. */
export async function startedAfter(dir: string): Promise<string | undefined> {
  try {
    return await readFile(join(dir, STARTED), "utf8");
  } catch (error) {
    if (isCode(error, "ENOENT", "ENOTDIR")) return undefined;
    throw error;
  }
}

/** What the instance's directory says of it; `undefined` if there is none, or it is another's, or it makes no sense. */
export async function identityOf(layout: Layout, ref: InstanceRef): Promise<Identity | undefined> {
  const inhabitant = await readInhabitant(layout, ref);
  if (inhabitant.kind !== "known" || !sameInstance(inhabitant.identity.ref, ref)) return undefined;
  return inhabitant.identity;
}

/** Takes its name away first, so that nobody ever finds half of one under it. Another's is left alone. May be called twice. */
export async function removeRunDir(layout: Layout, ref: InstanceRef): Promise<void> {
  const inhabitant = await readInhabitant(layout, ref);
  const isAnothers = inhabitant.kind === "known" && !sameInstance(inhabitant.identity.ref, ref);
  if (isAnothers) return;
  const draft = draftDir(layout, ref);
  await removeTree(draft);
  // A directory in which nobody ever wrote who lives there was not made by us.
  if (inhabitant.kind === "nobody") return;
  await rename(instanceDir(layout, ref), draft);
  await removeTree(draft);
}
