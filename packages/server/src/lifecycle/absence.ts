import { type Clock, type Ledger, type Provider, type Store, shifted, type Ticket } from "@holdfast/core";
import type { Log } from "../log.ts";
import type { Hosts } from "./hosts.ts";
import { sweepJob } from "./jobs.ts";
import { TICKET_MS } from "./shift.ts";

/** Longer than any pause of a server that runs: nobody was there, or the clock was set. */
const ABSENCE_MS = 180_000;
/** That somebody was there is written down so often. */
const SEEN_EVERY_MS = 30_000;
/** How often to look whether another server has given the time back. */
const ELSEWHERE_MS = 200;

interface AbsenceDeps {
  readonly store: Store;
  readonly providers: ReadonlyMap<string, Provider>;
  readonly hosts: Hosts;
  readonly clock: Clock;
  readonly log: Log;
  /** This server, among those that share the store. */
  readonly owner: string;
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
    // One at a time: what two of them saw would be given back twice.
    this.#looking ??= this.#look().finally(() => {
      this.#looking = undefined;
    });
    return this.#looking;
  }

  /**
   * Whether nobody was there before `readAt`, or the clock was set since: then all waits have been put right, and what
   * was read must be read again. Asked before new times are written, so that those are not put right, too.
   */
  async wasMissed(readAt: number): Promise<boolean> {
    const { providers } = this.#deps;
    if (![...providers.keys()].some((provider) => this.#isAbsence(provider, readAt))) return false;
    await this.giveBack();
    return true;
  }

  async #look(): Promise<void> {
    const { store, providers, hosts } = this.#deps;
    const now = await store.now();
    for (const provider of providers.keys()) {
      if (Math.abs(this.#unseenFor(provider, now)) < SEEN_EVERY_MS) continue;
      // Another server may have seen it, and given it back.
      await hosts.read();
      if (this.#isAbsence(provider, now)) await this.#giveBackAlone(provider, now);
      else await hosts.seen(provider, now);
    }
  }

  /** Of servers that notice it at the same time one gives it back, and the others wait for that before they act. */
  async #giveBackAlone(provider: string, now: number): Promise<void> {
    const { store, hosts, clock } = this.#deps;
    if (!store.isShared) return this.#giveBack(provider, now);
    const since = clock.now();
    for (;;) {
      const ticket = await this.#ticket(provider);
      await hosts.read();
      const isOver = !this.#isAbsence(provider, now);
      // By the steady clock: a ticket of one that died may be an hour from its end if the other was set.
      const isDead = clock.now() - since > TICKET_MS;
      if (!isOver && (ticket !== undefined || isDead)) await this.#giveBack(provider, now);
      if (ticket !== undefined) await store.release(ticket);
      if (isOver || ticket !== undefined || isDead) return;
      await clock.sleep(ELSEWHERE_MS);
    }
  }

  /** On an id that no sandbox has; the audit forgets it again. */
  async #ticket(provider: string): Promise<Ticket | undefined> {
    const { store, owner } = this.#deps;
    const nothing: Ledger = {
      sandboxId: `absence:${provider}`,
      sandbox: undefined,
      lease: undefined,
      debts: [],
      version: 0,
      readAt: 0,
    };
    await store.save(nothing, {});
    return store.ticket(nothing.sandboxId, { owner, ttlMs: TICKET_MS });
  }

  async #giveBack(provider: string, now: number): Promise<void> {
    const { store, hosts, log } = this.#deps;
    const byMs = this.#unseenFor(provider, now);
    log.warn("nobody was watching, or the clock was set: all waits go on from here", { provider, byMs });
    for (const id of await store.unsettled()) await this.#shift(id, provider, byMs);
    // Its time may be a year away now, and a backend that was out of reach is probed by it alone.
    await store.hurryJob(sweepJob(provider));
    await hosts.seen(provider, now);
  }

  #isAbsence(provider: string, now: number): boolean {
    const isKnown = this.#deps.hosts.get(provider).lastSeenAt !== null;
    return isKnown && Math.abs(this.#unseenFor(provider, now)) > ABSENCE_MS;
  }

  #unseenFor(provider: string, now: number): number {
    return now - (this.#deps.hosts.get(provider).lastSeenAt ?? 0);
  }

  async #shift(sandboxId: string, provider: string, byMs: number): Promise<void> {
    const { store } = this.#deps;
    for (;;) {
      const ledger = await store.ledger(sandboxId);
      const at = ledger?.sandbox?.provider ?? ledger?.lease?.provider ?? ledger?.debts[0]?.provider;
      if (ledger === undefined || at !== provider) return;
      if ((await store.save(ledger, shifted(ledger, byMs))) !== undefined) return;
    }
  }
}
