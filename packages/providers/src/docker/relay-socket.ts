import { chmod, readdir, rm } from "node:fs/promises";
import { createServer, type Server, type Socket } from "node:net";
import { join } from "node:path";
import type { Duplex } from "node:stream";
import { isCode } from "../local/atomic-file.ts";

/**
 * A unix socket of ours in front of something that has none: each connection to it is joined with a stream of its own.
 * In a directory that is for us alone.
 */
export async function listenAt(path: string, dial: () => Promise<Duplex>): Promise<Server> {
  await rm(path, { force: true });
  // Half of a connection may be closed: a request ends before its answer comes.
  const server = createServer({ allowHalfOpen: true, pauseOnConnect: true }, (socket) => {
    void joinWith(socket, dial);
  });
  await new Promise<void>((resolve, reject) => {
    server.once("error", reject);
    server.listen(path, resolve);
  });
  await chmod(path, 0o600);
  // It serves this process, and is no reason for it to stay.
  server.unref();
  return server;
}

async function joinWith(socket: Socket, dial: () => Promise<Duplex>): Promise<void> {
  socket.on("error", () => socket.destroy());
  try {
    const far = await dial();
    far.on("error", () => socket.destroy());
    far.once("close", () => socket.destroy());
    socket.once("close", () => far.destroy());
    if (socket.destroyed) far.destroy();
    far.pipe(socket);
    socket.pipe(far);
    socket.resume();
  } catch {
    socket.destroy(); // whoever dials remembers why
  }
}

/** Sockets in this directory of servers that were killed: their names begin with who made them. */
export async function removeStale(dir: string): Promise<void> {
  for (const name of await readdir(dir)) {
    const pid = /^(\d+)-\w+\.sock$/.exec(name)?.[1];
    if (pid !== undefined && !isAlive(Number(pid))) await rm(join(dir, name), { force: true });
  }
}

function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch (error) {
    return !isCode(error, "ESRCH");
  }
}
