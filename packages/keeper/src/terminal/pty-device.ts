import { dlopen, ptr } from "bun:ffi";
import { closeSync, constants, openSync, writeSync } from "node:fs";
import { HoldfastError, type TerminalSize } from "@holdfast/protocol";

/**
 * Our side of a pseudo-terminal. The runtime has PTYs of its own, but reads them as fast as it can and cannot be told
 * to pause; and `tcflow`, which stops a program's output from outside, loses a newline now and then (the kernel does
 * not look whether its two bytes were taken). Reading only when there is room is the one way that loses nothing: the
 * kernel then lets the program wait in its `write`.
 */
const { symbols: libc } = dlopen("libc.so.6", {
  ioctl: { args: ["i32", "u64", "ptr"], returns: "i32" },
  poll: { args: ["ptr", "u64", "i32"], returns: "i32" },
});

// Of <asm-generic/ioctls.h>, equal on x86-64 and arm64.
const TIOCSPTLCK = 0x40045431;
const TIOCGPTN = 0x80045430;
const TIOCSWINSZ = 0x5414;
const POLLIN = 1;

export class PtyDevice {
  /** Where the program's side can be opened. */
  readonly ttyPath: string;
  readonly #fd: number;
  readonly #reader: ReadableStreamDefaultReader<Uint8Array>;
  #closed = false;

  constructor(size: TerminalSize) {
    this.#fd = openMaster();
    this.ttyPath = `/dev/pts/${unlock(this.#fd)}`;
    this.resize(size);
    this.#reader = Bun.file(this.#fd).stream().getReader();
  }

  /** The next output; `undefined` when nobody has the program's side open any more. */
  async read(): Promise<Uint8Array | undefined> {
    try {
      return (await this.#reader.read()).value;
    } catch {
      // EIO is how the kernel says that the other side is closed.
      return undefined;
    }
  }

  /** Whether the kernel has output that was not read yet. It first moves along what was written and is on its way. */
  get hasOutput(): boolean {
    const looked = new Int32Array([this.#fd, POLLIN]);
    return !this.#closed && libc.poll(ptr(looked), 1, 0) > 0 && (((looked[1] ?? 0) >> 16) & POLLIN) !== 0;
  }

  /** Types as much as fits; returns how much that was. */
  write(bytes: Uint8Array): number {
    try {
      return this.#closed ? bytes.length : writeSync(this.#fd, bytes);
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === "EAGAIN") return 0;
      // The program is gone: nobody will read it.
      return bytes.length;
    }
  }

  /** The kernel tells the program by SIGWINCH, if this is a change. */
  resize({ cols, rows }: TerminalSize): void {
    if (!this.#closed) libc.ioctl(this.#fd, TIOCSWINSZ, ptr(new Uint16Array([rows, cols, 0, 0])));
  }

  async close(): Promise<void> {
    if (this.#closed) return;
    this.#closed = true;
    // Cancelling lets go of the runtime's own copy of the descriptor; after an error there is nothing to cancel.
    await this.#reader.cancel().catch(() => {});
    closeSync(this.#fd);
  }
}

function openMaster(): number {
  try {
    return openSync("/dev/ptmx", constants.O_RDWR | constants.O_NOCTTY | constants.O_NONBLOCK);
  } catch (cause) {
    throw new HoldfastError("unavailable", "the sandbox has no pseudo-terminal to give", {
      cause,
      started: "no",
      hint: "destroy terminals that nobody needs; if there are none, check that /dev/pts is mounted inside",
    });
  }
}

/** Makes the program's side usable, and returns its number. */
function unlock(fd: number): number {
  const number = new Int32Array(1);
  libc.ioctl(fd, TIOCSPTLCK, ptr(number));
  libc.ioctl(fd, TIOCGPTN, ptr(number));
  return number[0] ?? 0;
}
