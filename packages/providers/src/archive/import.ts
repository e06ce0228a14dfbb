import type { Archive, CopyOptions, SnapshotContent } from "@holdfast/core";
import { HoldfastError } from "@holdfast/protocol";
import { readTar, TarError } from "@holdfast/protocol/tar";
import { readManifest } from "./manifest.ts";
import { measure, type NamedTree } from "./pack.ts";
import { unpack } from "./unpack.ts";

/** Unpacks an archive of a snapshot into a directory of ours, and compares it with what the archive says it is. */
export async function importInto(
  dir: string,
  archive: Archive,
  options: CopyOptions & { trees: readonly NamedTree[]; uid: number | undefined },
): Promise<SnapshotContent> {
  const { trees, uid, roomBytes, onProgress, signal } = options;
  try {
    const members = readTar(archive)[Symbol.asyncIterator]();
    const first = await members.next();
    const manifest = await readManifest(first.done ? undefined : first.value);
    const parts = trees.map(({ name }) => name);
    await unpack(
      { [Symbol.asyncIterator]: () => members },
      { dir, parts, uid, roomBytes, onProgress, signal },
    );
    const content = await measure(trees, { checksum: true, signal });
    if (manifest.checksum !== undefined && manifest.checksum !== content.checksum) throw damaged();
    const leftOut = (manifest.leftOut ?? []).map((part) => ({ ...part, leftOut: true as const }));
    return { ...content, parts: [...content.parts, ...leftOut] };
  } catch (error) {
    if (!(error instanceof TarError)) throw error;
    throw new HoldfastError("invalid_argument", `the archive cannot be read: ${error.message}`, {
      hint: "Nothing of it is kept. Was it copied to its end?",
      cause: error,
      started: "no",
    });
  }
}

function damaged(): HoldfastError {
  return new HoldfastError("invalid_argument", "the archive is damaged: its checksum is another one", {
    hint: "Nothing of it is kept. Export it again.",
    started: "no",
  });
}
