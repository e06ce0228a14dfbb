import { ByteSource, cutShort } from "./byte-source.ts";
import { paddingOf, storedBytes, type TarEntry } from "./entry.ts";
import { readHeader, type TarOptions } from "./read-header.ts";

/** A part of a file's content, and where it belongs. */
interface Piece {
  readonly offset: number;
  readonly bytes: Uint8Array;
}

export interface TarMember {
  readonly entry: TarEntry;
  /** The data of a file, in order. To be read to its end, or not at all. */
  readonly data: AsyncIterable<Piece>;
}

/** The entries of an archive as it comes. Throws TarError for what is no archive, or is none that is taken. */
export async function* readTar(
  stream: AsyncIterable<Uint8Array>,
  options: TarOptions = {},
): AsyncGenerator<TarMember> {
  const source = new ByteSource(stream);
  try {
    for (;;) {
      const entry = await readHeader(source, options);
      if (entry === undefined) break;
      const data = piecesOf(source, entry);
      yield { entry, data };
      for await (const _ of data); // what was not wanted
      await source.takeAll(paddingOf(storedBytes(entry)));
    }
    await drain(source);
  } finally {
    await source.close();
  }
}

async function* piecesOf(source: ByteSource, entry: TarEntry): AsyncGenerator<Piece> {
  const segments = entry.sparse ?? [{ offset: 0, length: entry.sizeBytes }];
  for (const { offset, length } of segments) {
    for (let at = 0; at < length; ) {
      const bytes = await source.some(length - at);
      if (bytes === undefined) throw cutShort();
      yield { offset: offset + at, bytes };
      at += bytes.length;
    }
  }
}

// Archives are filled up to a whole number of records; of what comes after that, nothing is read.
const MOST_FILLER_BYTES = 1024 * 1024;

async function drain(source: ByteSource): Promise<void> {
  for (let left = MOST_FILLER_BYTES; left > 0; ) {
    const piece = await source.some(left);
    if (piece === undefined) return;
    left -= piece.length;
  }
}
