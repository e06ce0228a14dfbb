import { closeSync, fstatSync, lstatSync, openSync, readSync } from "node:fs";
import { open, readdir, readlink, stat } from "node:fs/promises";
import { paddingOf, TAR_END, type TarEntry, tarHeader } from "@holdfast/protocol/tar";

const PIECE_BYTES = 512 * 1024;
// Smaller files are read on this thread: to hand three calls to another costs more than the calls.
const SMALL_FILE_BYTES = 64 * 1024;
const SLASH = Buffer.from("/");
const NOTHING = Buffer.alloc(0);

/** A directory of this machine as a tar archive, with names relative to it. Names are bytes. */
export async function* packed(top: string): AsyncGenerator<Uint8Array> {
  await stat(top); // says plainly that there is none
  yield* gathered(whole(Buffer.from(top)));
}

async function* whole(top: Buffer): AsyncGenerator<Uint8Array> {
  yield* below(top, Buffer.from("./"), new Map());
  yield TAR_END;
}

async function* below(dir: Buffer, prefix: Buffer, known: Map<string, Buffer>): AsyncGenerator<Uint8Array> {
  for (const name of (await readdir(dir, { encoding: "buffer" })).sort(Buffer.compare)) {
    const from = Buffer.concat([dir, SLASH, name]);
    const path = Buffer.concat([prefix, name]);
    const facts = lstatSync(from);
    const common = { mode: facts.mode & 0o7777, mtime: facts.mtimeMs / 1000, sizeBytes: 0, target: NOTHING };
    if (facts.isSymbolicLink()) {
      yield tarHeader({
        ...common,
        path,
        type: "symlink",
        target: await readlink(from, { encoding: "buffer" }),
      });
    } else if (facts.isDirectory()) {
      const inside = Buffer.concat([path, SLASH]);
      yield tarHeader({ ...common, path: inside, type: "directory" });
      yield* below(from, inside, known);
    } else if (facts.isFile()) {
      const first = facts.nlink > 1 ? known.get(`${facts.dev} ${facts.ino}`) : undefined;
      if (first !== undefined) yield tarHeader({ ...common, path, type: "link", target: first });
      else {
        if (facts.nlink > 1) known.set(`${facts.dev} ${facts.ino}`, path);
        const entry = { ...common, path, type: "file" } as const;
        const small = facts.size <= SMALL_FILE_BYTES ? smallFile(from, entry) : undefined;
        if (small !== undefined) yield small;
        else yield* file(from, entry);
      }
    } // sockets, pipes and devices are left out
  }
}

/** Header, content and padding; `undefined` if it is not small any more. */
function smallFile(from: Buffer, entry: TarEntry): Uint8Array | undefined {
  const fd = openSync(from, "r");
  try {
    const { size } = fstatSync(fd);
    if (size > SMALL_FILE_BYTES) return undefined;
    const header = tarHeader({ ...entry, sizeBytes: size });
    const out = Buffer.alloc(header.length + size + paddingOf(size));
    out.set(header);
    if (readSync(fd, out, header.length, size, 0) < size) throw shorter(from);
    return out;
  } finally {
    closeSync(fd);
  }
}

async function* file(from: Buffer, entry: TarEntry): AsyncGenerator<Uint8Array> {
  const handle = await open(from, "r");
  try {
    const { size } = await handle.stat();
    yield tarHeader({ ...entry, sizeBytes: size });
    for (let at = 0; at < size; ) {
      const buffer = Buffer.allocUnsafe(Math.min(PIECE_BYTES, size - at));
      const { bytesRead } = await handle.read(buffer, 0, buffer.length, at);
      if (bytesRead === 0) throw shorter(from);
      yield buffer.subarray(0, bytesRead);
      at += bytesRead;
    }
    yield TAR_END.subarray(0, paddingOf(size));
  } finally {
    await handle.close();
  }
}

function shorter(from: Buffer): Error {
  return new Error(`${from} became shorter while it was read`);
}

/** Small pieces together: one large request body is far faster than ten thousand small writes. */
async function* gathered(pieces: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
  let waiting: Uint8Array[] = [];
  let bytes = 0;
  for await (const piece of pieces) {
    waiting.push(piece);
    bytes += piece.length;
    if (bytes < PIECE_BYTES / 2) continue;
    yield Buffer.concat(waiting);
    [waiting, bytes] = [[], 0];
  }
  if (bytes > 0) yield Buffer.concat(waiting);
}
