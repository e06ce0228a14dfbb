import type { ByteSource } from "./byte-source.ts";
import { BLOCK_BYTES, paddingOf, type Segment, type TarEntry, TarError } from "./entry.ts";
import {
  checksumOf,
  EXTENSION_IS_EXTENDED_AT,
  field,
  numberIn,
  SEGMENT_BYTES,
  SEGMENTS_IN_EXTENSION,
  SEGMENTS_IN_HEADER,
  textIn,
} from "./fields.ts";
import { parsePax, paxSegments, paxSegmentsInData } from "./pax.ts";

// A name has 4096 bytes at most; some writers put more into a header, nobody this much.
const MOST_HEADER_BYTES = 1024 * 1024;
const MOST_SEGMENTS = 1_000_000;

export interface TarOptions {
  /** Devices and pipes, which are never given. */
  readonly specials?: "refuse" | "skip";
}

const types = {
  "0": "file",
  "\0": "file",
  "7": "file",
  S: "file",
  "1": "link",
  "2": "symlink",
  "5": "directory",
} as const;
const refusedTypes: Readonly<Record<string, string>> = { "3": "a device", "4": "a device", "6": "a pipe" };

/** The next entry's header, with all that says more about it; `undefined` at the archive's end mark. */
export async function readHeader(
  source: ByteSource,
  { specials = "refuse" }: TarOptions = {},
): Promise<TarEntry | undefined> {
  let pax = new Map<string, Uint8Array>();
  let longPath: Uint8Array | undefined;
  let longTarget: Uint8Array | undefined;
  for (;;) {
    const block = await source.take(BLOCK_BYTES);
    if (block === undefined) throw new TarError("the archive has no end mark: it was cut short, or is none");
    if (block.every((byte) => byte === 0)) return undefined;
    if (checksumOf(block) !== numberIn(block, field.checksum))
      throw new TarError("this is no tar archive, or it is damaged");
    const letter = String.fromCharCode(block[field.type[0]] ?? 0);
    if (letter === "x") pax = parsePax(await headerData(source, block));
    else if (letter === "g")
      await headerData(source, block); // comments, of git for example; none is about a file
    else if (letter === "L") longPath = textIn(await headerData(source, block), [0, MOST_HEADER_BYTES]);
    else if (letter === "K") longTarget = textIn(await headerData(source, block), [0, MOST_HEADER_BYTES]);
    else if (specials === "skip" && letter in refusedTypes) {
      pax = new Map();
      longPath = undefined;
      longTarget = undefined;
    } else return entryOf(source, { block, letter, pax, longPath, longTarget });
  }
}

async function headerData(source: ByteSource, block: Uint8Array): Promise<Uint8Array> {
  const size = numberIn(block, field.size);
  if (size > MOST_HEADER_BYTES) throw new TarError("a header is too long");
  return (await source.takeAll(size + paddingOf(size))).subarray(0, size);
}

interface Parts {
  readonly block: Uint8Array;
  readonly letter: string;
  readonly pax: ReadonlyMap<string, Uint8Array>;
  readonly longPath: Uint8Array | undefined;
  readonly longTarget: Uint8Array | undefined;
}

async function entryOf(source: ByteSource, parts: Parts): Promise<TarEntry> {
  const { block, letter, pax } = parts;
  const path = pax.get("GNU.sparse.name") ?? pax.get("path") ?? parts.longPath ?? ustarPath(block);
  const target = pax.get("linkpath") ?? parts.longTarget ?? textIn(block, field.linkName);
  const type = typeOf(letter, path);
  const mtime = pax.has("mtime") ? Number(text(pax.get("mtime"))) : numberIn(block, field.mtime);
  const stored = pax.has("size") ? wholeNumber(pax.get("size")) : numberIn(block, field.size);
  const common = { path, type, target, mode: numberIn(block, field.mode) & 0o7777, mtime: mtime || 0 };
  if (type !== "file") {
    if (stored > 0) throw new TarError(`${text(path)} has data, but is a ${type}`);
    return { ...common, sizeBytes: 0 };
  }
  const { sizeBytes, sparse } = await sparseOf(source, { block, letter, pax, stored });
  return { ...common, sizeBytes, sparse };
}

function typeOf(letter: string, path: Uint8Array): TarEntry["type"] {
  const type = types[letter as keyof typeof types];
  if (type === undefined) {
    const what = refusedTypes[letter] ?? `of an unknown kind (${letter})`;
    throw new TarError(`${text(path)} is ${what}: only files, directories and links are taken`);
  }
  // As it was before there was a letter for it.
  return type === "file" && path.at(-1) === 0x2f ? "directory" : type;
}

async function sparseOf(
  source: ByteSource,
  { block, letter, pax, stored }: Pick<Parts, "block" | "letter" | "pax"> & { stored: number },
): Promise<{ sizeBytes: number; sparse?: readonly Segment[] }> {
  if (letter === "S") {
    const sparse = await gnuSegments(source, block);
    return checked({ sizeBytes: numberIn(block, field.realSize), sparse }, stored);
  }
  if (![...pax.keys()].some((key) => key.startsWith("GNU.sparse."))) return { sizeBytes: stored };
  const sizeBytes = wholeNumber(pax.get("GNU.sparse.realsize") ?? pax.get("GNU.sparse.size"));
  const listed = paxSegments(pax);
  if (listed !== undefined) return checked({ sizeBytes, sparse: listed }, stored);
  const { segments, bytes } = await paxSegmentsInData(source, {
    mostSegments: MOST_SEGMENTS,
    mostBytes: stored,
  });
  return checked({ sizeBytes, sparse: segments }, stored - bytes);
}

async function gnuSegments(source: ByteSource, block: Uint8Array): Promise<Segment[]> {
  const segments = segmentsIn(block, field.sparse[0], SEGMENTS_IN_HEADER);
  for (let more = block[field.isExtended[0]] !== 0; more; ) {
    const extension = await source.takeAll(BLOCK_BYTES);
    segments.push(...segmentsIn(extension, 0, SEGMENTS_IN_EXTENSION));
    if (segments.length > MOST_SEGMENTS) throw new TarError("a file has too many holes");
    more = extension[EXTENSION_IS_EXTENDED_AT] !== 0;
  }
  return segments;
}

function segmentsIn(block: Uint8Array, at: number, count: number): Segment[] {
  const segments = Array.from({ length: count }, (_, i) => ({
    offset: numberIn(block, [at + i * SEGMENT_BYTES, 12]),
    length: numberIn(block, [at + i * SEGMENT_BYTES + 12, 12]),
  }));
  return segments.filter(({ offset, length }) => offset > 0 || length > 0);
}

/** In order, within the file, and as much data as there is. */
function checked(file: { sizeBytes: number; sparse: Segment[] }, stored: number): typeof file {
  let at = 0;
  let sum = 0;
  for (const { offset, length } of file.sparse) {
    if (offset < at || offset + length > file.sizeBytes)
      throw new TarError("the holes of a file make no sense");
    at = offset + length;
    sum += length;
  }
  if (sum !== stored) throw new TarError("the holes of a file do not fit its data");
  return file;
}

function ustarPath(block: Uint8Array): Uint8Array {
  const name = textIn(block, field.name);
  // GNU's header has other things there.
  const isUstar = text(block.subarray(257, 263)) === "ustar\0";
  const prefix = isUstar ? textIn(block, field.prefix) : new Uint8Array(0);
  if (prefix.length === 0) return name;
  const out = new Uint8Array(prefix.length + 1 + name.length);
  out.set(prefix);
  out[prefix.length] = 0x2f;
  out.set(name, prefix.length + 1);
  return out;
}

function wholeNumber(value: Uint8Array | undefined): number {
  const number = Number(text(value));
  if (!Number.isSafeInteger(number) || number < 0) throw new TarError("a size in a header makes no sense");
  return number;
}

function text(value: Uint8Array | undefined): string {
  return new TextDecoder().decode(value);
}
