import type { Ledger, Provider, Store } from "@holdfast/core";
import type { Log } from "../log.ts";
import type { Hosts } from "./hosts.ts";
import { sweepJob } from "./jobs.ts";
import { storeWith } from "./store-with.ts";

/** Longer than any pause of a server that runs: nobody was there, or the clock was set. */
const ABSENCE_MS = 180_000;
/** That somebody was there is written down so often. */
const SEEN_EVERY_MS = 30_000;

interface AbsenceDeps {
  readonly store: Store;
  readonly providers: ReadonlyMap<string, Provider>;
  readonly hosts: Hosts;
  readonly log: Log;
}

/** Time that nobody was there to see does not count: a server that comes back renews before it acts. */
export class Absence {
  readonly #deps: AbsenceDeps;
  #looking: Promise<void> | undefined;

  constructor(deps: AbsenceDeps) {
    this.#deps = deps;
  }

  /** Before anything is taken for due: what nobody saw is given back. */
  giveBack(): Promise<void> {
    // One for all who ask at the same time.
    this.#looking ??= this.#look().finally(() => {
      this.#looking = undefined;
    });
    return this.#looking;
  }

  /**
   * Whether nobody was there before `readAt`, or the clock was set since: then all waits have been put right, and what
   * was read must be read again.
   */
  async #wasMissed(readAt: number): Promise<boolean> {
    const { providers } = this.#deps;
    if (![...providers.keys()].some((provider) => this.#isAbsence(provider, readAt))) return false;
    await this.giveBack();
    return true;
  }

  /**
   * The store, with times that can be relied on: a clock may be set, or a laptop sleep, in the middle of any work. What is
   * decided by a time from after that, and the rows from before, would end what still has its time; and what is written
   * by it would be put right although it is.
   */
  watched(store: Store): Store {
    const itself = (now: number) => now;
    const readAt = (ledger: Ledger) => ledger.readAt;
    return storeWith(store, {
      now: () => this.#reliable(() => store.now(), itself),
      ledger: (id) => this.#reliable(() => store.ledger(id), readAt),
      holding: (id) => this.#reliable(() => store.holding(id), readAt),
      find: (idOrName) => this.#reliable(() => store.find(idOrName), readAt),
    });
  }

  async #reliable<T>(read: () => Promise<T>, timeOf: (found: T & {}) => number): Promise<T> {
    for (;;) {
      const found = await read();
      if (found == null || !(await this.#wasMissed(timeOf(found)))) return found;
    }
  }

  async #look(): Promise<void> {
    const { store, providers, hosts } = this.#deps;
    const now = await store.now();
    for (const provider of providers.keys()) {
      if (Math.abs(this.#unseenFor(provider, now)) < SEEN_EVERY_MS) continue;
      // Another server may have seen it, and given it back.
      await hosts.read();
      if (this.#isAbsence(provider, now)) await this.#giveBack(provider, now);
      else await hosts.seen(provider, now);
    }
  }

  /** Of servers that notice it at the same time one gives it back, and the others find that somebody was there. */
  async #giveBack(provider: string, now: number): Promise<void> {
    const { store, hosts, log } = this.#deps;
    const byMs = this.#unseenFor(provider, now);
    // Its time may be a year away now, and a backend that was out of reach is probed by it alone.
    await store.hurryJob(sweepJob(provider));
    const moved = await store.giveBack(provider, { from: now - byMs, to: now });
    await hosts.read();
    if (moved !== undefined)
      log.warn("nobody was watching, or the clock was set: all waits go on from here", { provider, byMs });
  }

  #isAbsence(provider: string, now: number): boolean {
    const isKnown = this.#deps.hosts.get(provider).lastSeenAt !== null;
    return isKnown && Math.abs(this.#unseenFor(provider, now)) > ABSENCE_MS;
  }

  #unseenFor(provider: string, now: number): number {
    return now - (this.#deps.hosts.get(provider).lastSeenAt ?? 0);
  }
}
