import type { Change, Lease, Ledger, Store, Ticket } from "@holdfast/core";
import { storeWith } from "../lifecycle/store-with.ts";
import type { Meters } from "./meters.ts";

/**
 * The store, with a count of what is written about sandboxes. Only what was really written counts, and it counts once:
 * the rows decide between servers, so their metrics add up.
 */
export function meteredStore(store: Store, meters: Meters): Store {
  const passes = new Passes(meters);
  const counted: Partial<Store> = {
    async insertSandbox(row, options) {
      const made = await store.insertSandbox(row, options);
      // A repeated create gives the first sandbox back.
      if (made.sandboxId === row.id) meters.events.add(1, options.entry.type);
      return made;
    },
    async give(spare, row, options) {
      const given = await store.give(spare, row, options);
      if (given === undefined) return undefined;
      meters.events.add(1, options.entry.type);
      meters.sparesGiven.add(1, row.provider);
      return given;
    },
    async save(before, change, ticket) {
      const saved = await store.save(before, change, ticket);
      if (saved !== undefined) countChange(before, change, meters);
      return saved;
    },
    async bury(before, options) {
      const buried = await store.bury(before, options);
      if (buried) meters.events.add(1, "deleted");
      return buried;
    },
    ticket: async (id, options) => passes.began(await store.ticket(id, options)),
    takeDue: async (options) => (await store.takeDue(options)).map((ticket) => passes.began(ticket)),
    renew: async (ticket) => passes.goesOn(ticket, await store.renew(ticket)),
    async release(ticket) {
      passes.ended(ticket);
      await store.release(ticket);
    },
  };
  return storeWith(store, counted);
}

function countChange(before: Ledger, change: Change, meters: Meters): void {
  for (const { type } of change.entries ?? []) {
    meters.events.add(1, type);
    const provider = change.found?.provider ?? providerOf(before);
    if (type === "orphan_found") meters.orphans.add(1, provider, "orphan");
    if (type === "ghost_found") meters.orphans.add(1, provider, "ghost");
    if (type === "launch_failed") meters.launches.add(1, provider, "failed");
  }
  for (const lease of [before.lease, ...before.debts]) {
    const changed = lease === undefined ? undefined : change.leases?.[lease.instanceId];
    if (lease !== undefined && changed !== undefined) countLease(lease, changed, meters);
  }
}

function countLease(before: Lease, changed: Partial<Lease>, meters: Meters): void {
  const { provider, createdAt, admittedAt } = before;
  if (changed.phase === "live" && admittedAt === null && changed.admittedAt) {
    meters.launches.add(1, provider, "live");
    meters.launchSeconds.observe((changed.admittedAt - createdAt) / 1000, provider);
  }
  if (changed.phase === "stop_due" && changed.stopReason) meters.stops.add(1, provider, changed.stopReason);
  if (changed.phase === "gone" && changed.evidence) meters.evidence.add(1, provider, changed.evidence.kind);
  // An attempt is written before it is made, with its deadline.
  if (changed.attemptDeadlineAt && (changed.attempts ?? 0) > 1) meters.stopRetries.add(1, provider);
}

function providerOf({ sandbox, lease, debts }: Ledger): string {
  return lease?.provider ?? sandbox?.provider ?? debts[0]?.provider ?? "unknown";
}

/** How long each pass has its ticket. One that loses it is not counted. */
class Passes {
  readonly #meters: Meters;
  readonly #since = new WeakMap<Ticket, number>();

  constructor(meters: Meters) {
    this.#meters = meters;
  }

  began<T extends Ticket | undefined>(ticket: T): T {
    if (ticket !== undefined) this.#since.set(ticket, performance.now());
    return ticket;
  }

  goesOn(before: Ticket, renewed: Ticket | undefined): Ticket | undefined {
    const since = this.#since.get(before);
    if (since !== undefined && renewed !== undefined) this.#since.set(renewed, since);
    return renewed;
  }

  ended(ticket: Ticket): void {
    const since = this.#since.get(ticket);
    if (since !== undefined) this.#meters.reconcileSeconds.observe((performance.now() - since) / 1000);
  }
}
