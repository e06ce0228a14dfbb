import { dlopen, ptr } from "bun:ffi";
import { closeSync } from "node:fs";

const { symbols: libc } = dlopen("libc.so.6", {
  inotify_init1: { args: ["i32"], returns: "i32" },
  inotify_add_watch: { args: ["i32", "ptr", "u32"], returns: "i32" },
  inotify_rm_watch: { args: ["i32", "i32"], returns: "i32" },
});

const IN_NONBLOCK = 0o4000;
const IN_CLOEXEC = 0o2000000;

/** The kernel's bits; the same on every architecture. */
export const bits = {
  modify: 0x2,
  attrib: 0x4,
  closeWrite: 0x8,
  movedFrom: 0x40,
  movedTo: 0x80,
  create: 0x100,
  delete: 0x200,
  deleteSelf: 0x400,
  moveSelf: 0x800,
  unmount: 0x2000,
  overflow: 0x4000,
  ignored: 0x8000,
  onlyDir: 0x1000000,
  dontFollow: 0x2000000,
  isDir: 0x40000000,
} as const;

/** One event of the kernel. `name` is bytes, one to a character (latin1): any name fits, and it can be a key. */
export interface Notice {
  readonly watch: number;
  readonly mask: number;
  readonly cookie: number;
  readonly name: string;
}

const HEADER_BYTES = 16;

/** One queue of the kernel's. It is waited for by the event loop; nothing is polled. */
export class Inotify {
  readonly #fd: number;
  readonly #reader: ReadableStreamDefaultReader<Uint8Array>;
  #closed = false;

  /** Throws if the kernel gives no more queues to this user. `take` gets whole batches, in order. */
  constructor(take: (notices: Notice[]) => void) {
    this.#fd = libc.inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
    if (this.#fd < 0) throw new Error("the kernel gives no more inotify queues to this user");
    this.#reader = Bun.file(this.#fd).stream().getReader();
    void this.#run(take);
  }

  /** The watch's number, which is the same for the same directory; `undefined` if the kernel refused. */
  add(path: Buffer, mask: number): number | undefined {
    const watch = libc.inotify_add_watch(this.#fd, ptr(Buffer.concat([path, Buffer.of(0)])), mask);
    return watch < 0 ? undefined : watch;
  }

  remove(watch: number): void {
    libc.inotify_rm_watch(this.#fd, watch);
  }

  /** May be called twice. */
  close(): void {
    if (this.#closed) return;
    this.#closed = true;
    this.#reader.cancel().catch(() => {});
    closeSync(this.#fd);
  }

  async #run(take: (notices: Notice[]) => void): Promise<void> {
    for (;;) {
      const { value, done } = await this.#reader.read();
      if (done || this.#closed) return;
      take(decode(value));
    }
  }
}

/** The kernel gives out whole events only. */
function decode(bytes: Uint8Array): Notice[] {
  const buffer = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length);
  const notices: Notice[] = [];
  for (let at = 0; at + HEADER_BYTES <= buffer.length; ) {
    const length = buffer.readUInt32LE(at + 12);
    const name = buffer.subarray(at + HEADER_BYTES, at + HEADER_BYTES + length);
    const end = name.indexOf(0); // padded
    notices.push({
      watch: buffer.readInt32LE(at),
      mask: buffer.readUInt32LE(at + 4),
      cookie: buffer.readUInt32LE(at + 8),
      name: name.toString("latin1", 0, end < 0 ? name.length : end),
    });
    at += HEADER_BYTES + length;
  }
  return notices;
}
