import { statfsSync } from "node:fs";
import type { Socket } from "node:net";
import { becomeUndumpable } from "./engine/libc.ts";

/** How long a keeper that was just started may take to listen. */
const PATIENCE_MS = 10_000;
const PAUSE_MS = 10;

/**
 * `keeper relay NAME`: joins its own standard streams with the keeper that listens under this abstract name. Where the
 * server cannot open the keeper's socket, it has a container engine run this beside it. Says `+` once it is connected.
 */
export async function relay(name: string): Promise<void> {
  // What passes through here has the keeper's secret in it.
  becomeUndumpable();
  const socket = await connected(`\0${name}`);
  process.stdout.write("+");
  socket.pipe(process.stdout);
  process.stdin.pipe(socket);
  await new Promise<void>((resolve) => {
    for (const event of ["close", "end", "error"]) socket.once(event, () => resolve());
    process.stdout.once("error", () => resolve());
  });
  // Everything that was read is written, or nobody reads it.
  await new Promise<void>((resolve) => process.stdout.write("", () => resolve()));
}

async function connected(path: string): Promise<Socket> {
  const deadline = performance.now() + PATIENCE_MS;
  for (;;) {
    const socket = await tryConnect(path);
    if (socket !== undefined) return socket;
    if (performance.now() > deadline) throw new Error("no keeper answers");
    await Bun.sleep(PAUSE_MS);
  }
}

async function tryConnect(path: string): Promise<Socket | undefined> {
  const { connect } = await import("node:net"); // here, because a keeper that serves does not need it
  return new Promise((resolve) => {
    const socket = connect({ path, allowHalfOpen: true });
    socket.once("connect", () => resolve(socket)).once("error", () => resolve(undefined));
  });
}

/** `keeper disk PATH`: prints what the file system there has, for a server that cannot look itself. */
export function printDisk(path: string): void {
  const { bsize, blocks, bavail, files, ffree } = statfsSync(path);
  const disk = {
    sizeBytes: bsize * blocks,
    freeBytes: bsize * bavail,
    inodes: files,
    freeInodes: ffree,
  };
  process.stdout.write(`${JSON.stringify(disk)}\n`);
}
