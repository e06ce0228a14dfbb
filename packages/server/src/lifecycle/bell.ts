import { type Change, type Clock, isSpare, type Ledger, type Store } from "@holdfast/core";
import { storeWith } from "./store-with.ts";

/** Tells those who wait that something about a sandbox was written. A hint: what is true is in the store. */
export class Bell {
  readonly #waiting = new Map<string, Set<() => void>>();

  /** Told of every ring about a sandbox; of a spare nobody knows. */
  onRing: ((sandboxId: string) => void) | undefined;

  ring(sandboxId: string, { isSpare = false } = {}): void {
    if (!isSpare) this.onRing?.(sandboxId);
    for (const key of [sandboxId, ANY]) {
      const waiting = this.#waiting.get(key);
      this.#waiting.delete(key);
      for (const wake of waiting ?? []) wake();
    }
  }

  /** Until the next ring, or for `ms`. Without a sandbox: the next ring of all. */
  async wait(
    sandboxId: string | undefined,
    { ms, clock, signal }: { ms: number; clock: Clock; signal?: AbortSignal },
  ): Promise<void> {
    const key = sandboxId ?? ANY;
    const rung = new AbortController();
    const wake = () => rung.abort();
    const waiting = this.#waiting.get(key) ?? new Set();
    this.#waiting.set(key, waiting.add(wake));
    await clock.sleep(ms, signal === undefined ? rung.signal : AbortSignal.any([rung.signal, signal]));
    waiting.delete(wake);
    if (waiting.size === 0 && this.#waiting.get(key) === waiting) this.#waiting.delete(key);
  }
}

/** No sandbox's id is empty. */
const ANY = "";

/** The store, with a ring after every write to a sandbox's rows, or to its snapshots'. */
export function withBell(store: Store, bell: Bell): Store {
  const ringing = async <T>(sandboxId: string, write: Promise<T>, isSpare = false): Promise<T> => {
    const written = await write;
    bell.ring(sandboxId, { isSpare });
    return written;
  };
  const writes: Partial<Store> = {
    insertSandbox: (row, options) => ringing(row.id, store.insertSandbox(row, options), isSpare(row)),
    give: (spare, ...rest) => ringing(spare.sandboxId, store.give(spare, ...rest)),
    reserve: (before, ...rest) => ringing(before.sandboxId, store.reserve(before, ...rest)),
    save: (before, change, ticket) =>
      ringing(before.sandboxId, store.save(before, change, ticket), staysSpare(before, change)),
    bury: (before, options) =>
      ringing(before.sandboxId, store.bury(before, options), isSpare(before.sandbox)),
    giveBack: async (provider, unseen) => {
      const moved = await store.giveBack(provider, unseen);
      for (const ledger of moved ?? []) bell.ring(ledger.sandboxId, { isSpare: staysSpare(ledger, {}) });
      return moved;
    },
    insertSnapshot: (row, options) => ringing(row.sandboxId, store.insertSnapshot(row, options)),
    saveSnapshot: (before, change) => ringing(before.sandboxId, store.saveSnapshot(before, change)),
    forgetSnapshot: (before) => ringing(before.sandboxId, store.forgetSnapshot(before)),
  };
  return storeWith(store, writes);
}

function staysSpare({ sandbox }: Ledger, change: Change): boolean {
  return sandbox !== undefined && isSpare({ ...sandbox, ...change.sandbox });
}
