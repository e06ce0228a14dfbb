import {
  type Change,
  type Clock,
  type Holding,
  inTheWay,
  type KeeperControl,
  type Lease,
  resumeOrdered,
  type SandboxRow,
  type Store,
  stateOf,
  wantsDiskGone,
} from "@holdfast/core";
import type { HoldfastError } from "@holdfast/protocol";
import type { Bell } from "./bell.ts";
import { checkClaim } from "./claims.ts";
import type { Keepers } from "./keepers.ts";
import { type NewId, newLease } from "./new-lease.ts";
import type { Queue } from "./queue.ts";
import type { Reconciler } from "./reconciler.ts";
import { type Asked, absent, endedMeanwhile, launchFailed, refuseHopeless, stuck } from "./refusals.ts";
import type { Room } from "./room.ts";
import type { Spares } from "./spares.ts";

/** A call that needs a sandbox which is just being stopped, or out of reach, waits so long for that to pass. */
const PATIENCE_MS = 30_000;
/** Somebody who needs a quarantined sandbox makes us try at once, but not more often than this. */
const HURRY_EVERY_MS = 10_000;
/** How long an order to rest takes to be written, or to be taken back. */
const QUIESCED_MS = 500;

/** Around what a caller waits for, for whoever watches. It does the work exactly once. */
export type Around = <T>(what: "wake", work: () => Promise<T>) => Promise<T>;

/** A sandbox that runs, and the line to its keeper. */
export interface InUse<Link> {
  readonly holding: Holding;
  readonly link: Link;
  /** The standing claim that the call came under. */
  readonly claimFence?: number;
  /** The keeper was just told to rest: waits until that is over, and wakes it. Nothing was started before. */
  again(): Promise<InUse<Link>>;
}

export interface WakerDeps<Link extends KeeperControl> {
  readonly store: Store;
  readonly keepers: Keepers<Link>;
  readonly reconciler: Reconciler;
  readonly room: Room;
  readonly queue: Queue;
  readonly bell: Bell;
  readonly clock: Clock;
  readonly newId: NewId;
  readonly spares: Pick<Spares, "during">;
  readonly around?: Around | undefined;
  /** The whole way again, with all its checks. */
  readonly use: (idOrName: string, asked: Asked) => Promise<InUse<Link>>;
}

/** Makes sandboxes run: the one place where a launch is asked for. */
export class Waker<Link extends KeeperControl> {
  readonly #deps: WakerDeps<Link>;
  readonly #hurriedAt = new Map<string, number>();

  constructor(deps: WakerDeps<Link>) {
    this.#deps = deps;
  }

  /** Promises that it will run: the intent is on the disk when this returns, and the next server knows of it, too. */
  async begin(holding: Holding): Promise<Holding> {
    const { store, reconciler } = this.#deps;
    const begun = holding.lease === undefined ? await this.#reserve(holding, {}) : undefined;
    reconciler.kick(holding.sandboxId);
    return begun ?? (await store.holding(holding.sandboxId)) ?? holding;
  }

  /** Makes it run: waits for a stop that is under way, then launches. */
  wake(first: Holding, asked: Asked = {}): Promise<InUse<Link>> {
    const { around, spares } = this.#deps;
    const work = () => spares.during(() => this.#wake(first, asked));
    return around === undefined ? work() : around("wake", work);
  }

  async #wake(first: Holding, asked: Asked): Promise<InUse<Link>> {
    const { store, reconciler, clock } = this.#deps;
    const until = clock.now() + PATIENCE_MS;
    let holding: Holding | undefined = first;
    let reservedAfter = first.lease?.phase === "reserved" ? first.sandbox : undefined;
    while (holding !== undefined) {
      refuseHopeless(holding);
      if (inTheWay(holding) === undefined && !wantsDiskGone(holding.sandbox)) {
        if (reservedAfter !== undefined) throw whyGone(holding, reservedAfter);
        if ((await this.#reserve(holding, asked)) !== undefined) reservedAfter = holding.sandbox;
      } else if (isAsleep(holding)) await store.save(holding, resumeOrdered(holding, holding.lease));
      else await this.#hurry(holding);
      await reconciler.settle(first.sandboxId);
      holding = await store.holding(first.sandboxId);
      const connected = holding === undefined ? undefined : this.connected(holding, asked);
      if (connected !== undefined) return connected;
      if (holding === undefined) break;
      this.#deps.room.assertReachable(holding.sandbox.provider);
      await this.#waitIfStuck(holding, until);
    }
    throw absent(first.sandboxId, await store.tombstone(first.sandboxId));
  }

  /** The line to an instance that runs, once it is reached. Starts nothing: `undefined` if it does not run, or no more. */
  async reach(first: Holding, asked: Asked): Promise<InUse<Link> | undefined> {
    const { store, reconciler, clock, room } = this.#deps;
    const until = clock.now() + PATIENCE_MS;
    let holding: Holding | undefined = first;
    while (holding !== undefined && isLive(holding)) {
      const connected = this.connected(holding, asked);
      if (connected !== undefined) return connected;
      room.assertReachable(holding.sandbox.provider);
      await reconciler.settle(first.sandboxId);
      holding = await store.holding(first.sandboxId);
      if (holding !== undefined && this.connected(holding, asked) === undefined)
        await this.#waitIfStuck(holding, until);
    }
    return undefined;
  }

  async #reserve(holding: Holding, asked: Asked): Promise<Holding | undefined> {
    const { store, room, queue } = this.#deps;
    const { sandbox } = holding;
    return queue.run(asked.queueMs ?? 0, async () => {
      const rules = await room.rules(sandbox.provider);
      return store.reserve(holding, await newLease(sandbox, await store.now(), this.#deps), rules);
    });
  }

  /** A slow ladder is not for somebody who needs the sandbox now. */
  async #hurry(holding: Holding): Promise<void> {
    const { store, clock } = this.#deps;
    const { sandboxId } = holding;
    const change = broughtForward(holding);
    if (change === undefined) return;
    if (clock.now() - (this.#hurriedAt.get(sandboxId) ?? Number.NEGATIVE_INFINITY) < HURRY_EVERY_MS) return;
    for (const [id, at] of this.#hurriedAt)
      if (clock.now() - at >= HURRY_EVERY_MS) this.#hurriedAt.delete(id);
    this.#hurriedAt.set(sandboxId, clock.now());
    await store.save(holding, change);
  }

  /** Nothing can be done now: until the next attempt, or a change. Past the patience, why. */
  async #waitIfStuck(holding: Holding, until: number): Promise<void> {
    const { bell, clock } = this.#deps;
    const { sandbox, readAt } = holding;
    const lease = inTheWay(holding);
    if (lease === undefined && !wantsDiskGone(sandbox)) return;
    const wait = lease === undefined ? sandbox.diskRetryAt : lease.nextAttemptAt;
    const left = until - clock.now();
    // A launch has a deadline of its own.
    if (left <= 0 && stateOf(holding) !== "creating") throw stuck(holding);
    if (wait === null || wait <= readAt) return;
    // What is being fetched for it may take long, and its row says how far it is.
    if (left < wait - readAt && lease?.phase !== "reserved") throw stuck(holding);
    await bell.wait(holding.sandboxId, { ms: wait - readAt, clock });
  }

  /** The line to it, if it runs and this server has one. */
  connected(holding: Holding, asked: Asked): InUse<Link> | undefined {
    const { lease } = holding;
    if (lease === undefined || !isLive(holding)) return undefined;
    const link = this.#deps.keepers.link(lease.instanceId);
    if (link === undefined) return undefined;
    return {
      holding,
      link,
      ...claimOf(holding, asked),
      again: () => this.#again(lease, asked),
    };
  }

  /** The stop that the keeper was made ready for is about to be written, or was given up. */
  async #again({ sandboxId }: Lease, asked: Asked): Promise<InUse<Link>> {
    const { bell, clock } = this.#deps;
    await bell.wait(sandboxId, { ms: QUIESCED_MS, clock });
    return this.#deps.use(sandboxId, asked);
  }
}

/** The next attempt now: to end an instance that is quarantined, or to remove a disk that is in the way. */
function broughtForward(holding: Holding): Change | undefined {
  const { sandbox, readAt } = holding;
  const isLater = (at: number | null) => at !== null && at > readAt;
  const lease = inTheWay(holding);
  if (lease === undefined) {
    const waits = sandbox.diskAttempts > 0 && wantsDiskGone(sandbox) && isLater(sandbox.diskRetryAt);
    return waits ? { sandbox: { diskRetryAt: readAt } } : undefined;
  }
  const waits = lease.phase === "quarantined" || lease.stopReason === "orphan";
  if (!waits || !isLater(lease.nextAttemptAt)) return undefined;
  return { leases: { [lease.instanceId]: { nextAttemptAt: readAt } } };
}

/** It is paused, or about to be: whoever needs it has it resumed, as a stopped one is started. */
function isAsleep(holding: Holding): holding is Holding & { lease: Lease } {
  const phase = holding.lease?.phase;
  return (phase === "paused" || phase === "pausing") && holding.sandbox.desired === "active";
}

/** It runs, and nobody wants it to end. */
function isLive({ sandbox, lease }: Holding): boolean {
  return lease?.phase === "live" && sandbox.desired === "active";
}

/**
 * The number of the claim that the call comes under. The token is compared once more: while the call waited, the claim
 * may have ended, and another's number must not be lent to it.
 */
export function claimOf(holding: Holding, { claimToken }: Asked): { claimFence?: number } {
  if (claimToken === undefined) return {};
  checkClaim(holding, claimToken);
  return { claimFence: holding.sandbox.claimFence };
}

/** `before`: as it was when this call launched it. */
function whyGone(holding: Holding, before: SandboxRow): HoldfastError {
  const failedAgain = holding.sandbox.launchFailures > before.launchFailures;
  return failedAgain ? launchFailed(holding.sandbox) : endedMeanwhile(holding);
}
