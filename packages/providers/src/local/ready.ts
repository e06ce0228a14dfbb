import { readFile } from "node:fs/promises";
import { connect } from "node:net";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import type { InstanceRef } from "@holdfast/core";
import { HoldfastError } from "@holdfast/protocol";
import { isCode } from "./atomic-file.ts";
import { instanceDir, nameOf } from "./identity.ts";
import { removeBootFile } from "./instance-dir.ts";
import { LOG } from "./launcher.ts";
import type { Layout } from "./layout.ts";
import { findByName, type HostProcess, isAlive } from "./processes.ts";

/** A keeper answers some 50 ms after its start; a machine that swaps may need a hundred times that, and not more. */
const READY_TIMEOUT_MS = 30_000;
/** So long it is worth looking every millisecond. */
const USUAL_START_MS = 200;

/** Returns once the keeper answers; throws once nothing is left that could become one. */
export async function untilReady(ref: InstanceRef, layout: Layout, signal: AbortSignal): Promise<void> {
  const dir = instanceDir(layout, ref);
  const socket = join(dir, "run/keeper.sock");
  const start = performance.now();
  let processes: HostProcess[] = [];
  while (!(await accepts(socket))) {
    signal.throwIfAborted();
    if (!processes.some(isAlive)) processes = await findByName(nameOf(ref));
    // Once more after the look: the keeper may have come up in between.
    if (processes.length === 0 && !(await accepts(socket))) {
      throw await launchFailed(dir, "it ended before its keeper answered");
    }
    const elapsedMs = performance.now() - start;
    if (elapsedMs > READY_TIMEOUT_MS) throw await launchFailed(dir, "its keeper did not answer in time");
    await sleep(elapsedMs < USUAL_START_MS ? 1 : 20, undefined, { signal });
  }
  await removeBootFile(dir);
}

function accepts(path: string): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(path);
    const answer = (accepted: boolean): void => {
      socket.destroy();
      resolve(accepted);
    };
    socket.once("connect", () => answer(true)).once("error", () => answer(false));
  });
}

async function launchFailed(dir: string, what: string): Promise<HoldfastError> {
  const said = (await readLog(dir)).trim().split("\n").slice(-10).join("\n").slice(-2000);
  const message = `the instance could not be started: ${what}${said && `:\n${said}`}`;
  return new HoldfastError("launch_failed", message, {
    hint: hintFor(said),
    details: { log: join(dir, LOG) },
  });
}

function hintFor(said: string): string {
  if (/External interface not usable|No (external )?routable interface/i.test(said)) {
    return 'This machine has no route to any network. Connect it, or create the sandbox with network: "none".';
  }
  return 'Run "holdfast doctor": it tries what a sandbox needs and says what is missing.';
}

async function readLog(dir: string): Promise<string> {
  try {
    return await readFile(join(dir, LOG), "utf8");
  } catch (error) {
    if (isCode(error, "ENOENT")) return "";
    throw error;
  }
}
