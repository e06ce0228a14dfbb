import type { InstanceRef } from "@holdfast/core";
import { HoldfastError } from "@holdfast/protocol";
import { instanceDir } from "../local/identity.ts";
import type { Layout } from "../local/layout.ts";
import { accepts, SocketNews } from "../local/socket-news.ts";
import type { DockerApi } from "./api.ts";
import { ensureBridge, isBridged } from "./bridge.ts";
import { inspectContainer } from "./holder.ts";
import { containerName } from "./names.ts";

/** A keeper answers some 100 ms after its container's start; a machine that swaps may need a hundred times that. */
const READY_TIMEOUT_MS = 30_000;
/** How often we look for ourselves: not every daemon's files tell us of a change, and a bridge tells nothing. */
const PAUSE_MS = 10;
/** How often we ask whether the container still runs; a keeper that cannot start ends at once. */
const ASK_EVERY = 25;

/** Returns once the keeper answers; throws once its container has ended. */
export async function untilReady(
  ref: InstanceRef,
  { api, layout, signal }: { api: DockerApi; layout: Layout; signal: AbortSignal },
): Promise<void> {
  const dir = instanceDir(layout, ref);
  const deadline = performance.now() + READY_TIMEOUT_MS;
  const container = await inspectContainer(api, containerName(ref), signal);
  const bridge =
    container !== undefined && isBridged(container)
      ? await ensureBridge({ api, layout }, container.Id)
      : undefined;
  const isUp = () => (bridge === undefined ? accepts(dir) : answersThrough(bridge, signal));
  using news = new SocketNews(dir);
  for (let look = 1; !(await isUp()); look++) {
    signal.throwIfAborted();
    const asks = bridge !== undefined || look % ASK_EVERY === 0;
    const isOver = asks && !(await isRunning(api, ref, signal));
    // Once more after the look: the keeper may have come up in between.
    if (isOver && !(await isUp())) throw await notStarted(api, ref, "it ended before its keeper answered");
    if (performance.now() > deadline) throw await notStarted(api, ref, "its keeper did not answer in time");
    await news.next(PAUSE_MS);
  }
}

async function isRunning(api: DockerApi, ref: InstanceRef, signal: AbortSignal): Promise<boolean> {
  const container = await inspectContainer(api, containerName(ref), signal);
  return container?.State.Status === "running";
}

/** What comes back says that somebody is there; a bridge accepts before that. */
async function answersThrough(bridge: string, signal: AbortSignal): Promise<boolean> {
  try {
    await fetch("http://keeper/", { unix: bridge, signal, keepalive: false });
    return true;
  } catch {
    signal.throwIfAborted();
    return false;
  }
}

async function notStarted(api: DockerApi, ref: InstanceRef, what: string): Promise<HoldfastError> {
  const name = containerName(ref);
  const said = await lastWords(api, name);
  return new HoldfastError(
    "launch_failed",
    `the instance could not be started: ${what}${said && `:\n${said}`}`,
    {
      hint: `Look at: docker inspect ${name}, docker logs ${name}. "holdfast doctor" tries what a sandbox needs.`,
    },
  );
}

/** What the keeper has written, if it came to that. */
async function lastWords(api: DockerApi, name: string): Promise<string> {
  const query = { stdout: "1", stderr: "1", tail: "10" };
  const signal = AbortSignal.timeout(5_000);
  const { status, bytes } = await api.request({
    ...{ method: "GET", path: `/containers/${name}/logs`, query },
    ...{ expect: [404, 409, 501], signal },
  });
  return status === 200 ? withoutFrames(bytes).trim().slice(-2000) : "";
}

/** Docker puts eight bytes before each piece of a log: the stream, three zeros, and the length. */
function withoutFrames(bytes: Uint8Array): string {
  const view = Buffer.from(bytes);
  const pieces: Buffer[] = [];
  for (let at = 0; at + 8 <= view.length; at += 8 + view.readUInt32BE(at + 4)) {
    pieces.push(view.subarray(at + 8, at + 8 + view.readUInt32BE(at + 4)));
  }
  return Buffer.concat(pieces).toString("utf8");
}
