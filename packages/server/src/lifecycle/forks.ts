import type { Holding, KnownSnapshot, Store } from "@holdfast/core";
import type { CreateSandbox, ForkRequest } from "@holdfast/protocol";
import type { Asked } from "./refusals.ts";
import type { Sandboxes } from "./sandboxes.ts";
import type { Snapshots } from "./snapshots.ts";

/** A fork's snapshot that nobody came to remove, because a server died in between, goes after this. */
const ON_THE_WAY_SECONDS = 3600;

interface ForksDeps {
  readonly store: Store;
  readonly snapshots: Snapshots;
  // biome-ignore lint/suspicious/noExplicitAny: what a keeper can be asked does not matter here.
  readonly sandboxes: Sandboxes<any>;
}

/** Sandboxes that begin with another's files as they are at this moment. */
export class Forks {
  readonly #deps: ForksDeps;

  constructor(deps: ForksDeps) {
    this.#deps = deps;
  }

  /**
   * All of them, or none. Each has a disk of its own; the parent stands still for the time of one copy. They run, or,
   * with `wait: false`, are about to.
   */
  async fork(
    idOrName: string,
    request: ForkRequest,
    options: { asked: Asked; idempotencyKey?: string; wait?: boolean },
  ): Promise<Holding[]> {
    const { snapshots, sandboxes } = this.#deps;
    const parent = await sandboxes.touch(idOrName, options.asked);
    const { id } = await this.#copy(parent, options.idempotencyKey);
    const letGo = snapshots.hold(id);
    try {
      await snapshots.ready(id);
      const made = await this.#create(parent, request, { snapshotId: id, key: options.idempotencyKey });
      if (options.wait === false) return await Promise.all(made.map((one) => sandboxes.begin(one)));
      return await Promise.all(made.map(async (one) => (await sandboxes.wake(one)).holding));
    } finally {
      letGo();
      // It stays as long as one of them still needs it.
      await snapshots.delete(id);
    }
  }

  /** The same call again, after a server died in it, goes on with the same moment, if that was copied. */
  async #copy(parent: Holding, key: string | undefined): Promise<KnownSnapshot> {
    const { snapshots, store } = this.#deps;
    const begin = (idempotencyKey?: string) =>
      snapshots.begin(
        parent,
        { expiresInSeconds: ON_THE_WAY_SECONDS },
        { origin: "fork", ...(idempotencyKey !== undefined && { idempotencyKey }) },
      );
    if (key === undefined) return begin();
    const begun = await begin(`fork ${key}`);
    if (begun.phase === "deleting") return begin();
    if (snapshots.isBusy(begun, await store.now())) return begun;
    const found = await snapshots.settled(begun.id);
    if (found.phase === "ready") return found;
    await snapshots.delete(begun.id);
    return begin();
  }

  async #create(
    parent: Holding,
    request: ForkRequest,
    { snapshotId, key }: { snapshotId: string; key: string | undefined },
  ): Promise<Holding[]> {
    const { sandboxes } = this.#deps;
    const made: Holding[] = [];
    try {
      for (let i = 1; i <= (request.count ?? 1); i++) {
        const spec = { ...forkOf(parent, request), fromSnapshot: snapshotId, ...nameOf(request, i) };
        const idempotencyKey = key === undefined ? {} : { idempotencyKey: `${key}:${i}` };
        made.push(await sandboxes.create(spec, idempotencyKey));
      }
      return made;
    } catch (error) {
      for (const { sandboxId } of made) await sandboxes.delete(sandboxId, { mode: "force", waitMs: 0 });
      throw error;
    }
  }
}

function forkOf({ sandbox }: Holding, request: ForkRequest): CreateSandbox {
  const { count: _count, name: _name, labels, ...policy } = request;
  const asked = Object.fromEntries(Object.entries(policy).filter(([, value]) => value !== undefined));
  return {
    ...sandbox.spec,
    provider: sandbox.provider,
    ...sandbox.policy,
    ...asked,
    labels: { ...sandbox.labels, ...labels },
  };
}

function nameOf({ name }: ForkRequest, i: number): { name?: string } {
  return name === undefined ? {} : { name: `${name}-${i}` };
}
