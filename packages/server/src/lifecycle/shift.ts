import type { Clock, Store, Ticket } from "@holdfast/core";
import { within } from "./deadline.ts";

/** How long a right to work on a row lasts: longer than any call of a provider, with room. */
export const TICKET_MS = 60_000;
/** So much before its end nothing is begun or waited for any more: another server may have the row then. */
const MARGIN_MS = 10_000;

/** Another server works on the row now. What we were about to do is its business. */
export class TicketLost extends Error {
  constructor() {
    super("another server works on this sandbox now");
  }
}

/** One server's work on one sandbox, for as long as its ticket is good. */
export class Shift {
  readonly #store: Store;
  readonly #clock: Clock;
  #ticket: Ticket;
  /** By our own clock, counted from before the ticket was asked for. */
  #goodUntil: number;
  #ended = false;

  constructor(options: { store: Store; clock: Clock; ticket: Ticket; askedAt: number }) {
    this.#store = options.store;
    this.#clock = options.clock;
    this.#ticket = options.ticket;
    this.#goodUntil = options.askedAt + options.ticket.ttlMs - MARGIN_MS;
  }

  get ticket(): Ticket {
    return this.#ticket;
  }

  /** Makes sure that there is time for a call of `ms`. Before the intent is written. */
  async prepare(ms: number): Promise<void> {
    if (this.#clock.now() + ms > this.#goodUntil) await this.confirm();
  }

  /** Makes sure that the ticket is still ours, and good for as long as a new one. */
  async confirm(): Promise<void> {
    const askedAt = this.#clock.now();
    const renewed = await this.#store.renew(this.#ticket);
    if (renewed === undefined) throw new TicketLost();
    this.#ticket = renewed;
    this.#goodUntil = askedAt + renewed.ttlMs - MARGIN_MS;
  }

  /** Does it, if the ticket is still good at this very moment, and for no longer than it is. */
  async act<T>(
    options: { ms: number; closing?: AbortSignal },
    work: (signal: AbortSignal) => Promise<T>,
  ): Promise<T> {
    const left = this.#goodUntil - this.#clock.now();
    if (left <= 0) throw new TicketLost();
    return within(this.#clock, { ...options, ms: Math.min(options.ms, left) }, work);
  }

  /** May be called twice. */
  async end(): Promise<void> {
    if (this.#ended) return;
    this.#ended = true;
    await this.#store.release(this.#ticket);
  }
}
