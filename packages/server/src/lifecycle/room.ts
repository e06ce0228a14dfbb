import {
  type AdmissionRules,
  type Capacity,
  type Clock,
  diskShortage,
  type MinFreeDisk,
  type Provider,
  type Store,
} from "@holdfast/core";
import { HoldfastError } from "@holdfast/protocol";
import { within } from "./deadline.ts";
import { messageOf, providerOf } from "./effects.ts";
import type { Hosts } from "./hosts.ts";
import type { Sweeper } from "./sweeper.ts";

/** A measurement older than this is taken again, and a disk that is still low is cleared again. */
const FRESH_MS = 10_000;
const MEASURE_MS = 5_000;

export interface RoomConfig {
  /** Instances on one provider. */
  readonly slots: number | null;
  readonly tenantQuota: number | null;
  readonly minFreeDisk: MinFreeDisk;
}

interface RoomDeps {
  readonly store: Pick<Store, "leasesOf">;
  readonly providers: ReadonlyMap<string, Provider>;
  readonly hosts: Hosts;
  readonly sweeper: Pick<Sweeper, "clear" | "hasListed">;
  readonly clock: Clock;
  readonly config: RoomConfig;
}

/** What may be promised on each backend. It measures; the transaction that adds a row compares and decides. */
export class Room {
  readonly #deps: RoomDeps;
  readonly #measured = new Map<string, { at: number; capacity: Capacity }>();
  readonly #cleared = new Map<string, { at: number; done: Promise<void> }>();

  constructor(deps: RoomDeps) {
    this.#deps = deps;
  }

  async rules(provider: string): Promise<AdmissionRules> {
    const { hosts, config, sweeper } = this.#deps;
    hosts.assertReachable(provider);
    if (!sweeper.hasListed(provider)) throw notListedYet(provider);
    const measured = await this.#withRoomOnDisk(provider);
    const closedBecause = await this.#closedBecause(provider, measured);
    return { ...config, measured, closedBecause };
  }

  /** What may be written there beyond what is promised already. */
  async spareBytes(provider: string): Promise<number> {
    const { store, config } = this.#deps;
    this.assertReachable(provider);
    const { disk } = await this.#withRoomOnDisk(provider);
    const leases = (await store.leasesOf(provider)).filter(({ phase }) => phase !== "gone");
    const promised = leases.reduce((sum, { reservation }) => sum + reservation.diskBytes, 0);
    const { bytes, share } = config.minFreeDisk;
    return disk.freeBytes - Math.max(bytes, disk.sizeBytes * share, promised);
  }

  assertReachable(provider: string): void {
    this.#deps.hosts.assertReachable(provider);
  }

  async measure(provider: string): Promise<Capacity> {
    const { clock } = this.#deps;
    const last = this.#measured.get(provider);
    if (last !== undefined && clock.now() - last.at < FRESH_MS) return last.capacity;
    return this.#measureNow(provider);
  }

  /** When it is low, what nobody owns is cleared away first; then it is measured again, and the numbers decide. */
  async #withRoomOnDisk(provider: string): Promise<Capacity> {
    const capacity = await this.measure(provider);
    if (diskShortage(0, capacity, this.#deps.config.minFreeDisk) === undefined) return capacity;
    await this.#clear(provider);
    return this.#measureNow(provider);
  }

  /** One pass for all who ask at once, and who ask again while they wait in line. */
  #clear(provider: string): Promise<void> {
    const { clock, sweeper } = this.#deps;
    const last = this.#cleared.get(provider);
    if (last !== undefined && clock.now() - last.at < FRESH_MS) return last.done;
    const done = sweeper.clear(provider);
    this.#cleared.set(provider, { at: clock.now(), done });
    return done;
  }

  async #measureNow(provider: string): Promise<Capacity> {
    const { clock } = this.#deps;
    try {
      const backend = providerOf({ provider }, this.#deps);
      const capacity = await within(clock, { ms: MEASURE_MS }, (signal) => backend.capacity(signal));
      this.#measured.set(provider, { at: clock.now(), capacity });
      return capacity;
    } catch (error) {
      throw unknown(provider, error);
    }
  }

  /** A disk that was full and is not any more may be used again; any other fault needs an operator. */
  async #closedBecause(provider: string, measured: Capacity): Promise<string | null> {
    const { hosts, config } = this.#deps;
    const { closedBecause } = hosts.get(provider);
    if (closedBecause === null || !closedBecause.includes("ENOSPC")) return closedBecause;
    if (diskShortage(0, measured, config.minFreeDisk) !== undefined) return closedBecause;
    await hosts.reopen(provider);
    return null;
  }
}

function notListedYet(provider: string): HoldfastError {
  return new HoldfastError("provider_unavailable", `it is not known yet what is on provider ${provider}`, {
    hint: "the server is still looking; try again in a moment",
    started: "no",
  });
}

/** Not to know is no reason to destroy anything, nor to promise anything. */
function unknown(provider: string, error: unknown): HoldfastError {
  return new HoldfastError(
    "capacity_unknown",
    `what is free on ${provider} cannot be measured: ${messageOf(error)}`,
    {
      hint: "nothing was started or removed; look at the data dir's file system (`df`, `dmesg`), then try again",
      cause: error,
      started: "no",
    },
  );
}
