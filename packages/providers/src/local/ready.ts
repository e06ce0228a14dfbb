import { existsSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import type { InstanceRef } from "@holdfast/core";
import { HoldfastError } from "@holdfast/protocol";
import { isCode } from "./atomic-file.ts";
import { findHere } from "./here.ts";
import { instanceDir } from "./identity.ts";
import { removeBootFile } from "./instance-dir.ts";
import { files, LOG } from "./launcher.ts";
import type { Layout } from "./layout.ts";
import { accepts, SocketNews } from "./socket-news.ts";

/** A keeper answers some 50 ms after its start; a machine that swaps may need a hundred times that, and not more. */
const READY_TIMEOUT_MS = 30_000;
/** How often we look for ourselves, for what nothing tells us: the end of a launcher that another server started. */
const LOOK_PAUSE_MS = 50;

export interface Launched {
  readonly layout: Layout;
  readonly launcher: Promise<unknown> | undefined;
  readonly network: "none" | "full";
  readonly signal: AbortSignal;
}

/** Returns once the keeper answers; throws once nothing is left that could become one. */
export async function untilReady(ref: InstanceRef, options: Launched): Promise<void> {
  const dir = instanceDir(options.layout, ref);
  const deadline = performance.now() + READY_TIMEOUT_MS;
  using news = new SocketNews(dir, options.launcher);
  while (!((await accepts(dir)) && isClosedOff(dir, options.network))) {
    options.signal.throwIfAborted();
    // Once more after the look: the keeper may have come up in between.
    if (news.mayHaveEnded && (await findHere(options.layout, ref)).length === 0 && !(await accepts(dir))) {
      throw await launchFailed(dir, "it ended before its keeper answered");
    }
    if (existsSync(join(dir, files.leftOpen)))
      throw await launchFailed(dir, "its network could not be closed off");
    if (performance.now() > deadline) throw await launchFailed(dir, "its keeper did not answer in time");
    await news.next(LOOK_PAUSE_MS);
  }
  removeBootFile(dir);
}

/** From the host itself; long before its keeper answers, mostly. */
function isClosedOff(dir: string, network: "none" | "full"): boolean {
  return network === "none" || existsSync(join(dir, files.closedOff));
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
