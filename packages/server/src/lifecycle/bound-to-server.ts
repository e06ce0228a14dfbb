import { type Clock, type Holding, isHolding, type Store, stopOrdered } from "@holdfast/core";

/** Those that end with their server (`persistAcrossRestarts: false`). Their disks follow the policy, as ever. */
export class BoundToServer {
  readonly #store: Store;

  constructor({ store }: { store: Store }) {
    this.#store = store;
  }

  /** Orders the end of what an earlier server left running; it is not adopted. */
  async endLeft(): Promise<void> {
    for (const sandboxId of await this.#store.unsettled()) await this.#order(sandboxId, "server_restarted");
  }

  /** Ends what runs, because this server does. What takes longer than `ms` is ended by the next one. */
  async end(options: {
    settle: (sandboxId: string) => Promise<void>;
    clock: Clock;
    ms: number;
  }): Promise<void> {
    const { settle, clock, ms } = options;
    const ordered: string[] = [];
    for (const sandboxId of await this.#store.unsettled())
      if (await this.#order(sandboxId, "server_ended")) ordered.push(sandboxId);
    if (ordered.length === 0) return;
    await Promise.race([Promise.allSettled(ordered.map(settle)), clock.sleep(ms)]);
  }

  /** Whether there is one to be ended. */
  async #order(sandboxId: string, because: string): Promise<boolean> {
    for (;;) {
      const ledger = await this.#store.ledger(sandboxId);
      if (ledger === undefined || !isHolding(ledger) || !isBound(ledger)) return false;
      const { lease, readAt } = ledger;
      if (lease === undefined || isEnding.has(lease.phase)) return lease !== undefined;
      if ((await this.#store.save(ledger, stopOrdered(ledger, lease, because, readAt))) !== undefined)
        return true;
    }
  }
}

const isEnding: ReadonlySet<string> = new Set(["stop_due", "stopping", "quarantined"]);

function isBound({ sandbox }: Holding): boolean {
  return !sandbox.policy.persistAcrossRestarts;
}
