import { type Entry, typeFlags } from "./entry.ts";

const BLOCK = 512;
/** What a header's own fields can hold; what is more is said in a pax header before it. */
const NAME_BYTES = 100;
const MAX_OCTAL_SIZE = 0o77777777777;

/** The format `pax`, in its one shape for each entry: equal trees give equal bytes. */
export function headerOf(entry: Entry, { uid }: { uid: number }): Buffer {
  const name = entry.type === "directory" ? Buffer.concat([entry.path, SLASH]) : entry.path;
  const records = [
    ...(name.length > NAME_BYTES ? [record("path", name)] : []),
    ...(entry.link !== undefined && entry.link.length > NAME_BYTES ? [record("linkpath", entry.link)] : []),
    ...(entry.size > MAX_OCTAL_SIZE ? [record("size", Buffer.from(String(entry.size)))] : []),
  ];
  const main = block({ ...entry, name, flag: typeFlags[entry.type], uid });
  if (records.length === 0) return main;
  const said = Buffer.concat(records);
  const before = { name: PAX_NAME, mode: 0o644, size: said.length, mtime: 0, flag: "x", uid: 0 };
  return Buffer.concat([block(before), padded(said), main]);
}

/** Zeros up to the next block. */
export function paddingFor(size: number): Buffer {
  return Buffer.alloc((BLOCK - (size % BLOCK)) % BLOCK);
}

const SLASH = Buffer.from("/");
const PAX_NAME = Buffer.from("././@PaxHeader");

interface Block {
  readonly name: Buffer;
  readonly mode: number;
  readonly size: number;
  readonly mtime: number;
  readonly flag: string;
  readonly uid: number;
  readonly link?: Buffer;
}

function block({ name, mode, size, mtime, flag, uid, link }: Block): Buffer {
  const out = Buffer.alloc(BLOCK);
  const octal = (value: number, at: number, length: number) =>
    out.write(value.toString(8).padStart(length - 1, "0"), at, "latin1");
  name.copy(out, 0, 0, NAME_BYTES);
  octal(mode, 100, 8);
  octal(Math.min(uid, 0o7777777), 108, 8);
  octal(Math.min(uid, 0o7777777), 116, 8);
  octal(Math.min(size, MAX_OCTAL_SIZE), 124, 12);
  octal(Math.max(0, mtime), 136, 12);
  out.write(`        ${flag}`, 148, "latin1");
  link?.copy(out, 157, 0, NAME_BYTES);
  out.write("ustar\x0000", 257, "latin1");
  octal(checksumOf(out), 148, 7);
  out[154] = 0;
  out[155] = 0x20;
  return out;
}

/** Of a header, its own field counted as blanks. */
function checksumOf(header: Uint8Array): number {
  let sum = 0;
  for (let at = 0; at < BLOCK; at++) sum += at >= 148 && at < 156 ? 0x20 : (header[at] ?? 0);
  return sum;
}

/** `LENGTH KEY=VALUE\n`, where the length counts its own digits, too. */
function record(key: string, value: Buffer): Buffer {
  const rest = Buffer.concat([Buffer.from(` ${key}=`), value, Buffer.from("\n")]);
  let length = rest.length;
  while (String(length).length + rest.length !== length) length = String(length).length + rest.length;
  return Buffer.concat([Buffer.from(String(length)), rest]);
}

function padded(content: Buffer): Buffer {
  return Buffer.concat([content, paddingFor(content.length)]);
}
