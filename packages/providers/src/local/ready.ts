import { existsSync, type FSWatcher, watch } from "node:fs";
import { readFile } from "node:fs/promises";
import { connect } from "node:net";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import type { InstanceRef } from "@holdfast/core";
import { HoldfastError } from "@holdfast/protocol";
import { isCode } from "./atomic-file.ts";
import { findHere } from "./here.ts";
import { instanceDir } from "./identity.ts";
import { removeBootFile } from "./instance-dir.ts";
import { bornSocket, keeperSocket, secureSocket } from "./keeper-socket.ts";
import { LOG } from "./launcher.ts";
import type { Layout } from "./layout.ts";

/** A keeper answers some 50 ms after its start; a machine that swaps may need a hundred times that, and not more. */
const READY_TIMEOUT_MS = 30_000;
/** Between its socket's name and its first answer a keeper needs less than this; nothing tells us that moment. */
const ANSWER_PAUSE_MS = 1;
/** How often we look for ourselves, for what nothing tells us: the end of a launcher that another server started. */
const LOOK_PAUSE_MS = 50;

/** Returns once the keeper answers; throws once nothing is left that could become one. */
export async function untilReady(
  ref: InstanceRef,
  options: { layout: Layout; launcher: Promise<unknown> | undefined; signal: AbortSignal },
): Promise<void> {
  const dir = instanceDir(options.layout, ref);
  const deadline = performance.now() + READY_TIMEOUT_MS;
  using news = new SocketNews(join(dir, "run"), options.launcher);
  while (!(await accepts(dir))) {
    options.signal.throwIfAborted();
    // Once more after the look: the keeper may have come up in between.
    if (news.mayHaveEnded && (await findHere(options.layout, ref)).length === 0 && !(await accepts(dir))) {
      throw await launchFailed(dir, "it ended before its keeper answered");
    }
    if (performance.now() > deadline) throw await launchFailed(dir, "its keeper did not answer in time");
    if (existsSync(bornSocket(dir))) await sleep(ANSWER_PAUSE_MS, undefined, { signal: options.signal });
    else await news.next(LOOK_PAUSE_MS);
  }
  await removeBootFile(dir);
}

/** Tells when something happens in an instance's run directory, or its launcher ends. */
class SocketNews {
  readonly #watcher: FSWatcher | undefined;
  #wake: () => void = () => {};
  #launcherRuns: boolean;

  constructor(dir: string, launcher: Promise<unknown> | undefined) {
    // The directory may just be removed by a stop; then there is no news, and the look finds nothing.
    this.#watcher = existsSync(dir) ? watch(dir, () => this.#wake()) : undefined;
    this.#watcher?.on("error", () => this.#wake());
    this.#launcherRuns = launcher !== undefined;
    const ended = (): void => {
      this.#launcherRuns = false;
      this.#wake();
    };
    launcher?.then(ended, ended);
  }

  /** False as long as we know better. */
  get mayHaveEnded(): boolean {
    return !this.#launcherRuns;
  }

  async next(atMostMs: number): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#wake = resolve;
    const timer = setTimeout(resolve, atMostMs);
    await promise;
    clearTimeout(timer);
  }

  [Symbol.dispose](): void {
    this.#watcher?.close();
  }
}

async function accepts(dir: string): Promise<boolean> {
  if (!(await secureSocket(dir))) return false;
  return new Promise((resolve) => {
    const socket = connect(keeperSocket(dir));
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
