import { watch } from "node:fs";
import type { Sandbox } from "holdfast";

/** Changes on either side of a sync, as far as they matter to it. */
export interface Changes {
  /** Resolves when both sides are watched. */
  readonly ready: Promise<void>;
  /** Resolves when something has changed since the last call, and nothing more does; rejects when it cannot be known. */
  next(): Promise<void>;
}

// A program that writes many files is let finish: each sync looks at all of them.
const QUIET_MS = 200;

export function changesOf(options: {
  sandbox: Sandbox;
  local: string;
  remote: string;
  direction: "up" | "down" | "both";
  signal: AbortSignal;
}): Changes {
  const { sandbox, local, remote, direction, signal } = options;
  const bell = new Bell(signal);
  if (direction !== "down") {
    const watcher = watch(local, { recursive: true, signal }, () => bell.ring());
    watcher.on("error", (error) => bell.fail(error));
  }
  const ready = Promise.withResolvers<void>();
  if (direction === "up") ready.resolve();
  else void followRemote(sandbox, { remote, signal, bell, ready });
  return { ready: ready.promise, next: () => bell.next() };
}

async function followRemote(
  sandbox: Sandbox,
  parts: { remote: string; signal: AbortSignal; bell: Bell; ready: PromiseWithResolvers<void> },
): Promise<void> {
  const { remote, signal, bell, ready } = parts;
  try {
    for await (const event of sandbox.watch(remote, { signal })) {
      if (event.type === "ready") ready.resolve();
      else bell.ring();
    }
    throw new Error(`${remote} is gone from the sandbox`);
  } catch (error) {
    ready.reject(error);
    bell.fail(error);
  }
}

class Bell {
  #rung = Promise.withResolvers<void>();
  #timer: ReturnType<typeof setTimeout> | undefined;

  constructor(signal: AbortSignal) {
    this.#rung.promise.catch(() => {}); // told to whoever asks
    signal.addEventListener("abort", () => this.fail(signal.reason), { once: true });
  }

  ring(): void {
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => this.#rung.resolve(), QUIET_MS);
  }

  fail(error: unknown): void {
    clearTimeout(this.#timer);
    this.#rung.reject(error);
  }

  async next(): Promise<void> {
    await this.#rung.promise;
    this.#rung = Promise.withResolvers();
    this.#rung.promise.catch(() => {});
  }
}
