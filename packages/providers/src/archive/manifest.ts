import type { SnapshotContent, SnapshotNote } from "@holdfast/core";
import { HoldfastError, SnapshotManifest, type SnapshotPart } from "@holdfast/protocol";
import { paddingOf, type TarMember, tarHeader } from "@holdfast/protocol/tar";

const NAME = "manifest.json";
const MOST_BYTES = 1024 * 1024;

/** The first entry. No environment is in it: that may have secrets. */
export function manifestEntry(note: SnapshotNote, { parts, checksum }: SnapshotContent): Uint8Array {
  const { name, sandboxId, generation, spec, createdAt } = note;
  const manifest: SnapshotManifest = {
    holdfast: 1,
    ...{ name, sandboxId, generation, createdAt: new Date(createdAt).toISOString() },
    ...(spec.image !== undefined && { image: spec.image }),
    parts: parts.filter(({ image, leftOut }) => image === undefined && leftOut === undefined),
    ...leftOutOf(parts),
    ...(checksum !== null && { checksum }),
  };
  const text = Buffer.from(`${JSON.stringify(manifest, null, 2)}\n`);
  const header = tarHeader({
    ...{ path: Buffer.from(NAME), type: "file", mode: 0o644, target: new Uint8Array(0) },
    ...{ sizeBytes: text.length, mtime: Math.floor(createdAt / 1000) },
  });
  return Buffer.concat([header, text, Buffer.alloc(paddingOf(text.length))]);
}

/** An image would be loaded by a daemon as root, under whatever name it says: no archive that anybody may have made has one. */
function leftOutOf(parts: readonly SnapshotPart[]): Pick<SnapshotManifest, "leftOut"> {
  const leftOut = parts
    .filter(({ image, leftOut }) => image !== undefined || leftOut)
    .map(({ name, files, sizeBytes }) => ({ name, files, sizeBytes }));
  return leftOut.length === 0 ? {} : { leftOut };
}

/** From what should be an archive's first entry. */
export async function readManifest(member: TarMember | undefined): Promise<SnapshotManifest> {
  if (member === undefined || Buffer.from(member.entry.path).toString() !== NAME)
    throw notOurs(`its first entry is not ${NAME}`);
  if (member.entry.type !== "file" || member.entry.sizeBytes > MOST_BYTES)
    throw notOurs(`its ${NAME} is no such file`);
  const pieces: Uint8Array[] = [];
  for await (const { bytes } of member.data) pieces.push(Uint8Array.from(bytes));
  try {
    return SnapshotManifest.parse(JSON.parse(Buffer.concat(pieces).toString("utf8")));
  } catch (cause) {
    throw notOurs(`its ${NAME} makes no sense`, cause);
  }
}

function notOurs(why: string, cause?: unknown): HoldfastError {
  return new HoldfastError("invalid_argument", `this is no archive of a snapshot: ${why}`, {
    hint: "Give what `holdfast export` has written. Plain tar archives go into a sandbox as files.",
    cause,
    started: "no",
  });
}
