import { type Clock, type Provider, probeMs, type Store } from "@holdfast/core";
import type { Log } from "../log.ts";
import { messageOf } from "./effects.ts";
import { sweepJob } from "./jobs.ts";

/** A line that held for so long was a good one: the next one is made at once. */
const GOOD_LINE_MS = 30_000;

interface WatcherDeps {
  readonly store: Store;
  readonly providers: ReadonlyMap<string, Provider>;
  readonly clock: Clock;
  readonly random: () => number;
  readonly log: Log;
  readonly closing: AbortSignal;
  /** Looks at one sandbox. */
  readonly look: (sandboxId: string) => Promise<void>;
}

/**
 * Listens to backends that tell of changes. What they tell is no evidence: it only makes us look, at once instead of at
 * the next use. Nothing depends on it, so a backend that says nothing, or a line that breaks, costs time and nothing else.
 */
export class Watcher {
  readonly #deps: WatcherDeps;
  #watching: Promise<unknown> = Promise.resolve();

  constructor(deps: WatcherDeps) {
    this.#deps = deps;
  }

  start(): void {
    const told = [...this.#deps.providers.values()].filter(({ watch }) => watch !== undefined);
    this.#watching = Promise.all(told.map((provider) => this.#watch(provider)));
  }

  async close(): Promise<void> {
    await this.#watching;
  }

  async #watch(provider: Provider): Promise<void> {
    const { clock, random, log, closing } = this.#deps;
    for (let failures = 0; !closing.aborted; failures++) {
      const since = clock.now();
      const onChange = (sandboxId: string | undefined) => this.#changed(provider.kind, sandboxId);
      try {
        await provider.watch?.(onChange, closing);
      } catch (error) {
        if (!closing.aborted && failures === 0)
          log.warn("a backend cannot be heard", { provider: provider.kind, error: messageOf(error) });
      }
      if (clock.now() - since >= GOOD_LINE_MS) failures = 0;
      await clock.sleep(probeMs(failures + 1, random()), closing);
    }
  }

  #changed(provider: string, sandboxId: string | undefined): void {
    const looked = sandboxId === undefined ? this.#lookAtAll(provider) : this.#deps.look(sandboxId);
    void looked.catch((error: unknown) => {
      if (!this.#deps.closing.aborted)
        this.#deps.log.error("a look failed", { provider, sandbox: sandboxId, error: messageOf(error) });
    });
  }

  /** The line is new, so anything may have happened before it. A backend that was out of reach is probed by the sweep. */
  async #lookAtAll(provider: string): Promise<void> {
    const { store, look } = this.#deps;
    await store.hurryJob(sweepJob(provider));
    for (const { phase, sandboxId } of await store.leasesOf(provider))
      if (phase === "live" || phase === "paused") await look(sandboxId);
  }
}
