import type { Archive, FoundSnapshot } from "@holdfast/core";
import { TAR_END } from "@holdfast/protocol/tar";
import { manifestEntry } from "./manifest.ts";
import { type NamedTree, packTree } from "./pack.ts";

/** Small entries travel together. */
const CHUNK_BYTES = 256 * 1024;

/** The manifest, then everything in these trees. */
export function archiveOf({ note, content }: FoundSnapshot, trees: readonly NamedTree[]): Archive {
  return streamOf(entries());
  async function* entries(): AsyncGenerator<Uint8Array> {
    yield manifestEntry(note, content);
    for (const tree of trees) yield* packTree(tree);
    yield TAR_END;
  }
}

/** In pieces of a size that is worth a trip, as fast as they are read. */
export function streamOf(pieces: AsyncGenerator<Uint8Array>): Archive {
  return new ReadableStream({
    async pull(controller) {
      const next: Uint8Array[] = [];
      for (let bytes = 0; bytes < CHUNK_BYTES; ) {
        const { done, value } = await pieces.next();
        if (done) break;
        next.push(value);
        bytes += value.length;
      }
      if (next.length > 0) controller.enqueue(Uint8Array.from(Buffer.concat(next)));
      else controller.close();
    },
    async cancel() {
      await pieces.return(undefined);
    },
  });
}
