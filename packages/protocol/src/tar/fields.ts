import { TarError } from "./entry.ts";

/** Where each field of a header block is: [offset, length]. */
export const field = {
  name: [0, 100],
  mode: [100, 8],
  uid: [108, 8],
  gid: [116, 8],
  size: [124, 12],
  mtime: [136, 12],
  checksum: [148, 8],
  type: [156, 1],
  linkName: [157, 100],
  magic: [257, 8],
  prefix: [345, 155],
  // GNU's, for files with holes.
  sparse: [386, 96],
  isExtended: [482, 1],
  realSize: [483, 12],
} as const satisfies Record<string, readonly [number, number]>;

type Field = readonly [offset: number, length: number];

/** A segment of a file with holes: two numbers. */
export const SEGMENT_BYTES = 24;
/** In a header, and in each block that goes on with the list. */
export const SEGMENTS_IN_HEADER = 4;
export const SEGMENTS_IN_EXTENSION = 21;
export const EXTENSION_IS_EXTENDED_AT = 504;

export function textIn(block: Uint8Array, [offset, length]: Field): Uint8Array {
  const whole = block.subarray(offset, offset + length);
  const end = whole.indexOf(0);
  return end === -1 ? whole : whole.subarray(0, end);
}

/** Octal digits; or, with the highest bit set, a binary number, for what is too large for those. */
export function numberIn(block: Uint8Array, [offset, length]: Field): number {
  const first = block[offset] ?? 0;
  if ((first & 0x80) === 0) return octalIn(block, [offset, length]);
  if (first !== 0x80) throw new TarError("a number in a header is negative");
  let value = 0;
  for (let at = offset + 1; at < offset + length; at++) value = value * 256 + (block[at] ?? 0);
  if (!Number.isSafeInteger(value)) throw new TarError("a number in a header is too large");
  return value;
}

export function putNumber(block: Uint8Array, [offset, length]: Field, value: number): void {
  const octal = value.toString(8);
  if (octal.length < length) {
    putText(block, [offset, length], octal.padStart(length - 1, "0"));
    return;
  }
  let rest = value;
  for (let at = offset + length - 1; at > offset; at--) {
    block[at] = rest % 256;
    rest = Math.floor(rest / 256);
  }
  block[offset] = 0x80;
}

export function putText(block: Uint8Array, [offset]: Field, text: string): void {
  for (let i = 0; i < text.length; i++) block[offset + i] = text.charCodeAt(i);
}

/** The sum of all bytes, its own field taken for blanks. */
export function checksumOf(block: Uint8Array): number {
  const [from, length] = field.checksum;
  let sum = length * 0x20;
  for (let at = 0; at < block.length; at++) if (at < from || at >= from + length) sum += block[at] ?? 0;
  return sum;
}

function octalIn(block: Uint8Array, [offset, length]: Field): number {
  const text = String.fromCharCode(...block.subarray(offset, offset + length));
  const digits = /^[ \0]*([0-7]*)(?:[ \0]|$)/.exec(text)?.[1];
  if (digits === undefined)
    throw new TarError("this is no tar archive, or it is damaged: a number is not octal");
  return digits === "" ? 0 : Number.parseInt(digits, 8);
}
