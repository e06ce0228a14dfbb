import type { Change, Lease, Ledger, Store, Ticket } from "@holdfast/core";
import type { Actor } from "./scheduler.ts";

/** A transaction that changed the rows of one sandbox. */
export interface Commit {
  readonly actor: Actor;
  readonly op: "insertSandbox" | "give" | "reserve" | "save" | "bury" | "giveBack";
  readonly sandboxId: string;
  readonly before: Ledger | undefined;
  readonly after: Ledger;
  readonly change: Change;
  readonly ticket: Ticket | undefined;
  /** The store's time when its writer read what it decided on. */
  readonly decidedAt: number;
  /** Those leases that it touched, as they were and as they are. */
  readonly leases: readonly { readonly before: Lease | undefined; readonly after: Lease }[];
}

/** What has been committed, as the store's own answers tell it: so that each step can be judged without a query. */
export class Book {
  readonly ledgers = new Map<string, Ledger>();
  /** Every lease there ever was, gone or not. */
  readonly leases = new Map<string, Lease>();
  /** Who may work on what. */
  readonly tickets = new Map<string, Ticket>();

  phaseOf(instanceId: string): string | undefined {
    return this.leases.get(instanceId)?.phase;
  }

  /** The leases of one provider that are not gone: what its capacity is taken by. */
  standing(provider?: string): Lease[] {
    return [...this.leases.values()].filter(
      (lease) => lease.phase !== "gone" && (provider === undefined || lease.provider === provider),
    );
  }

  /** Takes down what a call to the store did: for each sandbox whose rows it changed. */
  enter(actor: Actor, op: keyof Store, args: readonly unknown[], answer: unknown): Commit[] {
    if (op === "insertSandbox" || op === "give" || op === "reserve") {
      return answer === undefined ? [] : [this.#commit({ actor, op, after: answer as Ledger, change: {} })];
    }
    if (op === "save") {
      const [{ readAt }, change, ticket] = args as [Ledger, Change, Ticket | undefined];
      return answer === undefined
        ? []
        : [this.#commit({ actor, op, after: answer as Ledger, change, ticket, decidedAt: readAt })];
    }
    if (op === "giveBack") {
      const moved = (answer ?? []) as Ledger[];
      return moved.map((after) => this.#commit({ actor, op, after, change: {} }));
    }
    if (op === "bury" && answer === true) {
      const [before] = args as [Ledger];
      const debts = this.ledgers.get(before.sandboxId)?.debts ?? [];
      const after = { ...before, sandbox: undefined, lease: undefined, debts };
      return [this.#commit({ actor, op, after, change: {} })];
    }
    this.#enterTickets(op, args, answer);
    return [];
  }

  /** After a backup was restored: what is committed is what was committed then. */
  async reload(store: Store, providers: readonly string[]): Promise<void> {
    this.ledgers.clear();
    this.leases.clear();
    this.tickets.clear();
    for (const provider of providers) {
      for (const lease of await store.leasesOf(provider)) this.leases.set(lease.instanceId, lease);
    }
    const { holdings } = await store.list({ limit: 1_000_000 });
    const spares = await Promise.all(providers.map((provider) => store.spares(provider)));
    for (const holding of [...holdings, ...spares.flat()]) this.ledgers.set(holding.sandboxId, holding);
  }

  #commit(entry: {
    actor: Actor;
    op: Commit["op"];
    after: Ledger;
    change: Change;
    ticket?: Ticket | undefined;
    decidedAt?: number;
  }): Commit {
    const { actor, op, after, change, ticket, decidedAt = after.readAt } = entry;
    const { sandboxId } = after;
    const before = this.ledgers.get(sandboxId);
    const leases = touched(before, after, change).map((lease) => ({
      before: this.leases.get(lease.instanceId),
      after: lease,
    }));
    for (const { after: lease } of leases) this.leases.set(lease.instanceId, lease);
    this.ledgers.set(sandboxId, after);
    return { actor, op, sandboxId, before, after, change, ticket, decidedAt, leases };
  }

  #enterTickets(op: keyof Store, args: readonly unknown[], answer: unknown): void {
    if (op === "takeDue") for (const ticket of answer as Ticket[]) this.tickets.set(ticket.key, ticket);
    if ((op === "ticket" || op === "renew") && answer !== undefined) {
      const ticket = answer as Ticket;
      this.tickets.set(ticket.key, ticket);
    }
    if (op === "release") {
      const [ticket] = args as [Ticket];
      if (this.tickets.get(ticket.key)?.no === ticket.no) this.tickets.delete(ticket.key);
    }
  }
}

/** A lease that is gone is in no ledger any more: it is as it was, with the change. */
function touched(before: Ledger | undefined, after: Ledger, { leases = {} }: Change): Lease[] {
  const present = all(after);
  const ids = new Set(present.map(({ instanceId }) => instanceId));
  const ended = all(before).filter(
    ({ instanceId }) => !ids.has(instanceId) && leases[instanceId] !== undefined,
  );
  return [...present, ...ended.map((lease) => ({ ...lease, ...leases[lease.instanceId] }))];
}

function all(ledger: Ledger | undefined): Lease[] {
  if (ledger === undefined) return [];
  return ledger.lease === undefined ? [...ledger.debts] : [ledger.lease, ...ledger.debts];
}
