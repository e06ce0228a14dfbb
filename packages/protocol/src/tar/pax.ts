import type { ByteSource } from "./byte-source.ts";
import { BLOCK_BYTES, type Segment, TarError } from "./entry.ts";

/** The records of a pax header: `LENGTH KEY=VALUE\n`, where the length counts the whole record. */
export function parsePax(data: Uint8Array): Map<string, Uint8Array> {
  const records = new Map<string, Uint8Array>();
  for (let at = 0; at < data.length; ) {
    const blank = data.indexOf(0x20, at);
    const length = blank === -1 ? Number.NaN : Number(ascii(data.subarray(at, blank)));
    const end = at + length;
    const equals = data.indexOf(0x3d, blank);
    const isSound = Number.isInteger(length) && equals > blank && equals < end && end <= data.length;
    if (!isSound || data[end - 1] !== 0x0a) throw new TarError("a pax header makes no sense");
    const key = ascii(data.subarray(blank + 1, equals));
    if (key === "GNU.sparse.offset") throw new TarError("this old form of files with holes is not read");
    records.set(key, data.subarray(equals + 1, end - 1));
    at = end;
  }
  return records;
}

/** Where a file with holes has data, if the header has the list (version 0.1). */
export function paxSegments(pax: ReadonlyMap<string, Uint8Array>): Segment[] | undefined {
  const map = pax.get("GNU.sparse.map");
  return map === undefined ? undefined : paired(ascii(map).split(",").map(whole));
}

/** The list before the data itself (version 1.0): numbers on lines of their own, to the end of a block. */
export async function paxSegmentsInData(
  source: ByteSource,
  { mostSegments, mostBytes }: { mostSegments: number; mostBytes: number },
): Promise<{ segments: Segment[]; bytes: number }> {
  let seen = "";
  for (let bytes = 0; bytes < mostBytes; ) {
    seen += ascii(await source.takeAll(BLOCK_BYTES));
    bytes += BLOCK_BYTES;
    const lines = seen.split("\n");
    const count = lines.length > 1 ? whole(lines[0] ?? "") : undefined;
    if (count !== undefined && count > mostSegments) throw new TarError("a file has too many holes");
    if (count !== undefined && lines.length > 1 + 2 * count)
      return { segments: paired(lines.slice(1, 1 + 2 * count).map(whole)), bytes };
  }
  throw new TarError("the holes of a file make no sense");
}

function paired(numbers: number[]): Segment[] {
  return Array.from({ length: numbers.length / 2 }, (_, i) => ({
    offset: numbers[2 * i] ?? 0,
    length: numbers[2 * i + 1] ?? 0,
  }));
}

function whole(text: string): number {
  if (!/^\d{1,15}$/.test(text)) throw new TarError("the holes of a file make no sense");
  return Number(text);
}

function ascii(bytes: Uint8Array): string {
  return new TextDecoder("latin1").decode(bytes);
}
