import { readFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { type CopyOptions, LAYER } from "@holdfast/core";
import { HoldfastError, type SnapshotPart } from "@holdfast/protocol";
import { isCode, writeDurably } from "../local/atomic-file.ts";
import type { Draft } from "../local/snapshot-vault.ts";
import { accountFiles } from "./account.ts";
import type { DockerApi } from "./api.ts";
import type { Change, Container, Image } from "./engine-types.ts";
import { findImage } from "./image.ts";
import { ownVolumes } from "./layer.ts";
import type { SnapshotImages } from "./snapshot-images.ts";

/** In a snapshot: which image holds its layer, and what the image below it says that programs need. */
const LAYER_FILE = "layer.json";

interface LayerNote {
  readonly image: string;
  readonly env: readonly string[];
}

/** The container's own files become an image of the snapshot's; nothing, where there are none but ours. */
export async function copyLayer(
  { Id }: Container,
  { dir, snapshotId }: Draft,
  copying: Pick<CopyOptions, "roomBytes" | "signal"> & { api: DockerApi; images: SnapshotImages },
): Promise<SnapshotPart[]> {
  const { api, images, roomBytes, signal } = copying;
  const call = { method: "GET", signal } as const;
  const changes = (await api.json<Change[] | null>({ ...call, path: `/containers/${Id}/changes` })) ?? [];
  const path = `/containers/${Id}/json`;
  const container = await api.json<Container>({ ...call, path, query: { size: "1" } });
  if (container === undefined) return [];
  const lost = ownVolumes(container).map(volumePart);
  const files = changes.filter(isWorks(container)).length;
  if (files === 0) return lost;
  const { SizeRw: sizeBytes = 0 } = container;
  if (sizeBytes > roomBytes) throw noRoom(sizeBytes, roomBytes);
  const below = await findImage(api, container.Image, signal);
  const image = await images.commit(snapshotId, { container: Id, sizeBytes, signal });
  const note: LayerNote = { image, env: below?.Config?.Env ?? [] };
  await writeDurably(join(dir, LAYER_FILE), JSON.stringify(note));
  return [{ name: LAYER, files, sizeBytes, image }, ...lost];
}

/** It is nobody's part but the container's: it is said, and not copied. */
function volumePart(place: string): SnapshotPart {
  return { name: `the volume ${place}`, files: 0, sizeBytes: 0, leftOut: true };
}

/** The image that containers from this snapshot are made of; `undefined` if it is the one that their spec names. */
export async function imageOfSnapshot(
  { dir, snapshotId }: Draft,
  { images, signal }: { images: SnapshotImages; signal: AbortSignal },
): Promise<Image | undefined> {
  const note = await readNote(dir);
  if (note === undefined) return undefined;
  const { Id } = await images.require(note.image, { snapshotId, signal });
  // What its container was started with is the keeper's.
  return { Id, Config: { Env: note.env } };
}

async function readNote(dir: string): Promise<LayerNote | undefined> {
  try {
    return JSON.parse(await readFile(join(dir, LAYER_FILE), "utf8")) as LayerNote;
  } catch (error) {
    if (isCode(error, "ENOENT")) return undefined;
    throw error;
  }
}

/** Whether a change is the work's. Every container has some of ours: the places of its mounts, and its list of users. */
function isWorks({ Config, Mounts, HostConfig }: Container): (change: Change) => boolean {
  const isRoot = Config.User?.split(":")[0] === "0";
  const own = new Set([
    ...(Mounts ?? []).map(({ Destination }) => Destination),
    ...Object.keys(HostConfig?.Tmpfs ?? {}),
    // None but root can change these.
    ...(isRoot ? [] : accountFiles),
  ]);
  for (const place of own) if (place !== "/") own.add(dirname(place));
  return ({ Path }) => !own.has(Path);
}

function noRoom(wanted: number, roomBytes: number): HoldfastError {
  const room = Math.max(0, Math.floor(roomBytes));
  return new HoldfastError(
    "capacity_exhausted",
    `there is no room for a copy of ${wanted} bytes of the container's own files: ${room} may be used`,
    { hint: "delete what is not needed (`holdfast snapshot ls`), then try again", started: "no" },
  );
}
