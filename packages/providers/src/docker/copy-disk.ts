import { readFile } from "node:fs/promises";
import { basename, join } from "node:path";
import type { CopyOptions, SandboxRef } from "@holdfast/core";
import { HoldfastError, type SnapshotPart } from "@holdfast/protocol";
import { readTar, TarError, type TarMember } from "@holdfast/protocol/tar";
import { unpack } from "../archive/unpack.ts";
import { isCode, writeDurably } from "../local/atomic-file.ts";
import { FILE_PARTS } from "../local/disk.ts";
import { isRoot, SNAPSHOT_UID } from "../local/host-user.ts";
import type { Layout } from "../local/layout.ts";
import type { Draft } from "../local/snapshot-vault.ts";
import type { DockerApi } from "./api.ts";
import { copyLayer } from "./copy-layer.ts";
import { instancesOf } from "./discover.ts";
import { pointDoors } from "./doors.ts";
import type { Container, Info } from "./engine-types.ts";
import { inspectContainer } from "./holder.ts";
import { placeOfPart } from "./inside.ts";
import { findLayer } from "./layer.ts";
import { containerName, type DiskPart } from "./names.ts";
import { canPause, setPaused } from "./pause.ts";
import type { SnapshotImages } from "./snapshot-images.ts";

/** In a draft: the container that was paused for it, in case nobody lives to let it go on. */
const PAUSED = "paused";
/** Of a call that must be made, whatever becomes of its caller. */
const LAST_CALL_MS = 10_000;

export interface Daemon {
  readonly api: DockerApi;
  readonly layout: Layout;
  readonly images: SnapshotImages;
  readonly info: Info;
}

/**
 * The volumes of a sandbox into a draft, through the daemon, and the container's own files into an image, while the
 * container is paused: all of one moment.
 */
export async function copyDisk(
  of: SandboxRef,
  { dir: draft, snapshotId }: Draft,
  options: CopyOptions & Daemon,
): Promise<SnapshotPart[]> {
  const { api, layout, signal } = options;
  const container = await containerOf(of, options);
  if (container === undefined) throw noContainer(of);
  const isRunning = container.State.Status === "running";
  const { possible, detail } = canPause(options.info);
  if (isRunning && !possible) throw cannotStandStill(detail);
  if (isRunning) await writeDurably(join(draft, PAUSED), container.Id);
  // The daemon opens no container whose doors lead nowhere, as they do when it has ended; a launch points them anew.
  else if (container.State.Status !== "paused") await pointDoors(layout, of, { run: draft, bundle: draft });
  try {
    if (isRunning) await setPaused(api, container.Id, { to: "pause", signal });
    const layer = await copyLayer(container, { dir: draft, snapshotId }, options);
    for (const part of FILE_PARTS) await copyPart(part, container.Id, draft, options);
    return layer;
  } finally {
    if (isRunning) await letGo(draft, options);
  }
}

/** Lets the container go on that an interrupted copy has paused. May be called twice. */
export async function letGo(draft: string, { api }: Pick<Daemon, "api">): Promise<void> {
  const id = await readFile(join(draft, PAUSED), "utf8").catch((error: unknown) => {
    if (isCode(error, "ENOENT")) return undefined;
    throw error;
  });
  if (id !== undefined)
    await setPaused(api, id, { to: "unpause", signal: AbortSignal.timeout(LAST_CALL_MS) });
}

async function copyPart(
  part: DiskPart & (typeof FILE_PARTS)[number],
  container: string,
  draft: string,
  { api, roomBytes, onProgress, signal }: CopyOptions & Daemon,
): Promise<void> {
  const path = placeOfPart[part];
  const call = { method: "GET", path: `/containers/${container}/archive`, query: { path }, signal } as const;
  const uid = isRoot() ? SNAPSHOT_UID : undefined;
  try {
    const members = renamed(readTar(api.stream(call), { specials: "skip" }), basename(path), part);
    await unpack(members, { dir: draft, parts: [part], uid, roomBytes, onProgress, signal });
  } catch (error) {
    if (!(error instanceof TarError)) throw error;
    throw new HoldfastError("unavailable", `Docker's copy of ${path} cannot be read: ${error.message}`, {
      cause: error,
    });
  }
}

/** Docker names everything by the last name of the path that it was asked for; Podman by none, if nothing runs there. */
async function* renamed(
  members: AsyncIterable<TarMember>,
  from: string,
  to: string,
): AsyncGenerator<TarMember> {
  const rename = (path: Uint8Array): Uint8Array => {
    if (path[0] === SLASH) return Buffer.concat([Buffer.from(to), path]);
    const isBelow = Buffer.from(path.subarray(0, from.length)).toString("latin1") === from;
    return isBelow ? Buffer.concat([Buffer.from(to), path.subarray(from.length)]) : path;
  };
  for await (const { entry, data } of members) {
    const target = entry.type === "link" ? rename(entry.target) : entry.target;
    yield { entry: { ...entry, path: rename(entry.path), target, mtime: Math.floor(entry.mtime) }, data };
  }
}

const SLASH = 0x2f;

/** The one that runs, or the one that waits for the next generation: both see the volumes. */
async function containerOf(
  of: SandboxRef,
  { api, layout, signal }: Pick<Daemon, "api" | "layout"> & Pick<CopyOptions, "signal">,
): Promise<Container | undefined> {
  const [instance] = await instancesOf(of, { api, layout, signal });
  if (instance !== undefined) return inspectContainer(api, containerName(instance), signal);
  return findLayer(of, { api, layout, signal });
}

function cannotStandStill(why: string): HoldfastError {
  return new HoldfastError("unsupported", `what runs cannot be copied as of one moment: ${why}`, {
    hint: "Stop the sandbox first: its files can be copied then.",
    started: "no",
  });
}

function noContainer({ sandboxId }: SandboxRef): HoldfastError {
  return new HoldfastError("wrong_state", `sandbox ${sandboxId} has no container`, {
    hint: "Start it once, then its volumes can be read.",
    started: "no",
  });
}
