import { readdirSync, readlinkSync } from "node:fs";
import type { PortWait } from "@holdfast/protocol";
import type { Engine } from "../engine/engine.ts";
import { type TreeTarget, treeMembers } from "../engine/tree.ts";
import { listeningSockets } from "../ports/listening.ts";
import { getProcess } from "./process.ts";

// The kernel tells nobody that a socket listens, so we look: often at first, for servers that start at once.
const FIRST_LOOK_MS = 10;
const LATER_LOOK_MS = 100;

/** Waits until this process's own tree listens on the port, it ends, or the time is up. Somebody else's port is not it. */
export async function waitForPort(
  engine: Engine,
  wait: { id: string; port: number; timeoutMs: number; signal: AbortSignal },
): Promise<PortWait> {
  const { id, port } = wait;
  const deadline = performance.now() + wait.timeoutMs;
  for (let pause = FIRST_LOOK_MS; ; pause = Math.min(pause * 1.5, LATER_LOOK_MS)) {
    const { status } = getProcess(engine, id);
    const listening = isListening({ leader: engine.running(id)?.leader, marker: id }, port);
    const left = deadline - performance.now();
    if (listening || status.state !== "running" || left <= 0 || wait.signal.aborted)
      return { port, listening, status };
    await Promise.race([Bun.sleep(Math.min(pause, left)), engine.running(id)?.finished]);
  }
}

function isListening(tree: TreeTarget, port: number): boolean {
  const inodes = listeningInodes(port);
  return inodes.size > 0 && treeMembers(tree).some(({ pid }) => holdsAny(pid, inodes));
}

/** The sockets that listen on a port, over IPv4 or IPv6, on any address. */
function listeningInodes(port: number): Set<string> {
  const there = listeningSockets().filter((socket) => socket.port === port);
  return new Set(there.map(({ inode }) => inode));
}

function holdsAny(pid: number, inodes: ReadonlySet<string>): boolean {
  try {
    return readdirSync(`/proc/${pid}/fd`).some((fd) => inodes.has(linkOf(`/proc/${pid}/fd/${fd}`)));
  } catch {
    return false; // it ended, or hides its descriptors
  }
}

function linkOf(path: string): string {
  try {
    return readlinkSync(path);
  } catch {
    return "";
  }
}
