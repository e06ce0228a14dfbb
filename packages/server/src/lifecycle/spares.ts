import {
  type AdmissionRules,
  type Clock,
  fitsASpare,
  givenUp,
  type Holding,
  isReadySpare,
  isSpare,
  type Lease,
  type NewSandbox,
  newSpare,
  type Provider,
  type Store,
  shapeOf,
  type TimelineEntry,
} from "@holdfast/core";
import { HoldfastError } from "@holdfast/protocol";
import type { Log } from "../log.ts";
import { admissionOf } from "./admission.ts";
import { within } from "./deadline.ts";
import { messageOf } from "./effects.ts";
import type { Keepers } from "./keepers.ts";
import { type NewId, newLease } from "./new-lease.ts";
import type { Room } from "./room.ts";

/**
 * So long after the last one who waited for a sandbox. Shorter, and the launch would be in the way of the first command
 * in what was just created, which takes 5 ms; longer, and whoever creates one every tenth of a second never gets one.
 */
const REST_MS = 20;
/** A keeper answers within a millisecond. */
const ANSWER_MS = 500;
/** Whoever needs the room of a spare waits so long for its end. */
const ROOM_MS = 5_000;
/** Another server may be at work on it. */
const LOOK_MS = 100;

export interface SparesDeps {
  readonly store: Store;
  readonly providers: ReadonlyMap<string, Provider>;
  readonly keepers: Keepers;
  readonly settle: (sandboxId: string) => Promise<void>;
  readonly kick: (sandboxId: string) => void;
  readonly room: Pick<Room, "rules">;
  readonly clock: Clock;
  readonly newId: NewId;
  readonly log: Log;
  readonly closing: AbortSignal;
  readonly orphanLimitSeconds: number;
  /** How many there may be; none without somebody who asked for one like it. */
  readonly most: number;
}

/**
 * Instances that were launched ahead, for whoever creates the next sandbox of a shape that was just asked for. What is
 * known of them is in the rows, like all that is known of sandboxes: this only gives them away, and sees to the next.
 */
export class Spares {
  readonly #deps: SparesDeps;
  /** Those that a create is just trying to get: another need not try. */
  readonly #taking = new Set<string>();
  /** What was asked for since, by shape; the latest is last. */
  readonly #wanted = new Map<string, NewSandbox>();
  readonly #ending = new AbortController();
  #waiting = 0;
  #rest = new AbortController();
  #preparing: Promise<void> = Promise.resolve();
  #makingRoom: Promise<boolean> | undefined;

  constructor(deps: SparesDeps) {
    this.#deps = deps;
  }

  /** Makes a spare the sandbox that is asked for; `undefined` if there is none for it. */
  async give(
    row: NewSandbox,
    options: { idempotencyKey?: string; rules: AdmissionRules },
  ): Promise<Holding | undefined> {
    if (this.#deps.most === 0 || !fitsASpare(row)) return undefined;
    const shape = shapeOf(row);
    for (const spare of await this.#here([row.provider])) {
      if (!isReadySpare(spare) || shapeOf(spare.sandbox) !== shape) continue;
      if (this.#taking.has(spare.sandboxId)) continue;
      this.#taking.add(spare.sandboxId);
      try {
        if (!(await this.#answers(spare))) continue;
        const given = await this.#deps.store.give(spare, row, { ...options, entry: entryOf(spare) });
        if (given !== undefined) return await this.#told(given);
      } finally {
        this.#taking.delete(spare.sandboxId);
      }
    }
    return undefined;
  }

  /** Somebody created one like it: the next who does should find a spare. */
  want(row: NewSandbox): void {
    if (this.#deps.most === 0 || !fitsASpare(row)) return;
    const shape = shapeOf(row);
    this.#wanted.delete(shape);
    this.#wanted.set(shape, row);
  }

  /** While somebody waits for a sandbox to run, none is launched ahead. */
  async during<T>(work: () => Promise<T>): Promise<T> {
    this.#waiting++;
    this.#rest.abort();
    try {
      return await work();
    } finally {
      if (--this.#waiting === 0 && this.#wanted.size > 0) this.#prepareLater();
    }
  }

  /** Ends all of them: somebody needs the room. Whether there was one. */
  makeRoom(): Promise<boolean> {
    this.#makingRoom ??= this.#endAll(() => this.#all(), "room is needed").finally(() => {
      this.#makingRoom = undefined;
    });
    return this.#makingRoom;
  }

  /** Nobody asked for them, so nobody misses them when the server ends. */
  async end(): Promise<void> {
    await this.close();
    await this.#endAll(() => this.#here(this.#deps.providers.keys()), "its server ends");
  }

  /** Waits for what is under way. */
  async close(): Promise<void> {
    this.#ending.abort();
    await this.#preparing;
  }

  #prepareLater(): void {
    this.#rest = new AbortController();
    const over = AbortSignal.any([this.#rest.signal, this.#ending.signal, this.#deps.closing]);
    const before = this.#preparing;
    this.#preparing = (async () => {
      await this.#deps.clock.sleep(REST_MS, over);
      await before;
      while (!over.aborted && this.#wanted.size > 0) await this.#prepareNext();
    })();
  }

  async #prepareNext(): Promise<void> {
    const [shape, row] = [...this.#wanted].at(-1) ?? [];
    if (shape === undefined || row === undefined) return;
    this.#wanted.delete(shape);
    try {
      if (await this.#makePlace(shape)) await this.#prepare(row);
    } catch (error) {
      // Where there is no room there is none; anything else, the next create has to deal with, too.
      if (isNoRoom(error) || this.#deps.closing.aborted) return;
      this.#deps.log.warn("no spare was prepared", { provider: row.provider, error: messageOf(error) });
    }
  }

  /** The oldest make way for a shape that is asked for now. Whether one of that shape is missing. */
  async #makePlace(shape: string): Promise<boolean> {
    const { most, providers } = this.#deps;
    const here = await this.#here(providers.keys());
    if (here.some((spare) => isReadySpare(spare) && shapeOf(spare.sandbox) === shape)) return false;
    for (const old of here.slice(0, Math.max(0, here.length - most + 1)))
      await this.#end(old, "another shape is asked for");
    return true;
  }

  async #prepare({ provider, spec, policy }: NewSandbox): Promise<void> {
    const { store, newId, room, settle } = this.#deps;
    const rules = { ...(await room.rules(provider)), tenantQuota: null, leavesRoom: true };
    const row = newSpare(newId("sandbox"), { provider, spec, policy }, await store.now());
    const entry = { type: "prepared", detail: { provider } };
    await store.insertSandbox(row, {
      entry,
      rules,
      lease: await newLease(row, row.createdAt, this.#deps),
    });
    await settle(row.id);
  }

  /** The line to a keeper that has just died may still stand, and one that hangs is of no use to anybody. */
  async #answers({ lease }: Holding & { lease: Lease }): Promise<boolean> {
    const { keepers, clock, kick } = this.#deps;
    try {
      await within(clock, { ms: ANSWER_MS }, async () => keepers.link(lease.instanceId)?.info());
      return true;
    } catch {
      // Nobody is worse off than without a spare; what became of it is found out beside.
      keepers.drop(lease.instanceId);
      kick(lease.sandboxId);
      return false;
    }
  }

  /** From the commit on it is somebody's; a keeper that does not hear of it now is told when it is reached anew. */
  async #told(given: Holding): Promise<Holding> {
    const { keepers, log } = this.#deps;
    const { sandbox, lease } = given;
    if (lease === undefined) return given;
    try {
      await keepers.link(lease.instanceId)?.admit(admissionOf(sandbox, lease, this.#deps));
    } catch (error) {
      log.warn("a spare's keeper was not reached", { sandbox: sandbox.id, error: messageOf(error) });
      keepers.drop(lease.instanceId);
    }
    return given;
  }

  async #endAll(those: () => Promise<Holding[]>, because: string): Promise<boolean> {
    const { clock } = this.#deps;
    const until = clock.now() + ROOM_MS;
    let left = await those();
    const wasOne = left.length > 0;
    while (left.length > 0) {
      const over = new AbortController();
      const ends = Promise.allSettled(left.map((spare) => this.#end(spare, because)));
      await Promise.race([ends, clock.sleep(until - clock.now(), over.signal)]);
      over.abort();
      left = await those();
      if (left.length > 0 && clock.now() >= until) break;
      if (left.length > 0) await clock.sleep(LOOK_MS);
    }
    return wasOne;
  }

  /** If it still is a spare; what was given away in this moment is none of ours. */
  async #end({ sandboxId }: Holding, because: string): Promise<void> {
    const { store, settle } = this.#deps;
    for (;;) {
      const holding = await store.holding(sandboxId);
      if (holding === undefined || !isSpare(holding.sandbox)) return;
      if (holding.sandbox.desired === "deleted") break;
      if ((await store.save(holding, givenUp(holding, because))) !== undefined) break;
    }
    await settle(sandboxId);
  }

  /** Those that this server has a line to; another's it leaves alone. */
  async #here(providers: Iterable<string>): Promise<Holding[]> {
    const { store, keepers } = this.#deps;
    const all = await Promise.all([...providers].map((provider) => store.spares(provider)));
    return all
      .flat()
      .filter(({ lease }) => lease !== undefined && keepers.link(lease.instanceId) !== undefined);
  }

  async #all(): Promise<Holding[]> {
    const { store, providers } = this.#deps;
    return (await Promise.all([...providers.keys()].map((provider) => store.spares(provider)))).flat();
  }
}

function entryOf({ sandbox }: Holding): TimelineEntry {
  const { name, provider, createdAt } = sandbox;
  const spare = { preparedAt: new Date(createdAt).toISOString() };
  return { type: "created", detail: { name, provider, spare } };
}

function isNoRoom(error: unknown): boolean {
  return error instanceof HoldfastError && error.code === "capacity_exhausted";
}
