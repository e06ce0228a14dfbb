import { existsSync, type FSWatcher, watch } from "node:fs";
import { connect } from "node:net";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { bornSocket, keeperSocket, secureSocket } from "./keeper-socket.ts";

/** Between its socket's name and its first answer a keeper needs less than this; nothing tells us that moment. */
const ANSWER_PAUSE_MS = 1;

/** Tells when something happens in an instance's run directory, or its launcher ends. */
export class SocketNews {
  readonly #dir: string;
  readonly #watcher: FSWatcher | undefined;
  #wake: () => void = () => {};
  #launcherRuns: boolean;

  constructor(instanceDir: string, launcher?: Promise<unknown>) {
    this.#dir = instanceDir;
    const dir = join(instanceDir, "run");
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

  /** Until it is worth another look. */
  async next(atMostMs: number): Promise<void> {
    if ([bornSocket, keeperSocket].some((socket) => existsSync(socket(this.#dir))))
      return sleep(ANSWER_PAUSE_MS);
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

/**
 * Whether somebody listens on the keeper's socket. From then on it is in its safe place. It is not moved before: whoever
 * makes it may still need its name, as gVisor does between the making and the listening.
 */
export async function accepts(dir: string): Promise<boolean> {
  if (existsSync(keeperSocket(dir))) return answers(keeperSocket(dir));
  return (await answers(bornSocket(dir))) && secureSocket(dir);
}

function answers(path: string): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(path);
    const answer = (accepted: boolean): void => {
      socket.destroy();
      resolve(accepted);
    };
    socket.once("connect", () => answer(true)).once("error", () => answer(false));
  });
}
