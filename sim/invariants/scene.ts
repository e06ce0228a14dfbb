import type { InstanceRef, Lease } from "@holdfast/core";
import type { Book } from "../book.ts";
import type { Coverage } from "../coverage.ts";
import type { Judge } from "../judge.ts";
import type { Actor, Scheduler } from "../scheduler.ts";
import type { Backend, SimInstance } from "../world/backend.ts";

/** What happened before, as far as the invariants ask for it. Restoring a backup does not change it: the world remembers. */
export class History {
  /** The highest ever handed out, by sandbox id. */
  readonly generations = new Map<string, { generation: number; fence: number }>();
  /** What was there when a backup was restored, and no server has listed since; by sandbox and generation. */
  readonly unlisted = new Map<string, InstanceRef & { readonly fence: number | null }>();
  /** The highest ever handed out by name, which a successor goes on from; forgotten with a restored backup. */
  readonly names = new Map<string, number>();
  /** Launches that may still arrive within what the backend promises, by instance id. */
  readonly underWay = new Map<string, number>();
  /** What a server saw absent, by server and instance. */
  readonly absences = new Map<string, number>();
  /** What a server found in a list, by server. */
  readonly listed = new Map<string, Set<string>>();
  /** When the last attempt to stop was over, by instance: by the store's clock then, and by nobody's. */
  readonly attemptEnds = new Map<string, { storeTime: number; at: number }>();
  /** Attempts that are counted while none is under way, by instance. */
  readonly attempts = new Map<string, number>();
  /** Sandboxes that somebody wanted deleted, at any time. */
  readonly deleted = new Set<string>();
  /** Sandboxes that are somebody's, or were: no spares. */
  readonly owned = new Set<string>();
  /** Given up by an operator's word. */
  readonly abandoned = new Set<string>();
  /** Orphans that are in the way of somebody who needs their sandbox. */
  readonly needed = new Set<string>();
  /** A backup was restored, which knows nothing of what was made or removed since. */
  wentBack = false;
  /** Frozen by somebody else, or by a request that nobody waits for any more. */
  readonly pausedOutside = new Set<string>();
  /** Outputs that a client was told are safe, by sandbox. */
  readonly acked = new Map<string, string[]>();
  /** When a server last read that an instance is the current one of a sandbox that is wanted, by server and instance. */
  readonly wantedReads = new Map<string, number>();
  /** When a keeper last told a server who it is, by server and instance. */
  readonly greetings = new Map<string, number>();
  /** Sandboxes that a restored backup has forgotten, or knows only as they were. */
  readonly forgotten = new Set<string>();
}

/** Everything that a check may look at. */
export interface Scene {
  readonly scheduler: Scheduler;
  readonly book: Book;
  readonly judge: Judge;
  readonly coverage: Coverage;
  readonly history: History;
  readonly backends: ReadonlyMap<string, Backend>;
  /** The store's own time. */
  readonly storeNow: () => number;
  readonly installationId: () => string;
  /** There is one server: nobody could take its tickets, and the store's clock is its machine's, which may be set. */
  readonly isAlone: () => boolean;
  /** The store's clock was set: ages that were written before mean little. */
  readonly wasClockSet: () => boolean;
  /** How far the store's clock was set forward by so little that no server notices. */
  readonly unnoticedMs: () => number;
  /** The name under which a server holds its tickets. */
  readonly ownerOf: (actor: Actor) => string;
}

export function instanceOf(scene: Scene, ref: Pick<InstanceRef, "instanceId">): SimInstance | undefined {
  for (const backend of scene.backends.values()) {
    for (const instance of backend.instances.values()) {
      if (instance.ref.instanceId === ref.instanceId) return instance;
    }
  }
  return undefined;
}

export function say({ instanceId, sandboxId, generation, phase }: Lease): string {
  return `${instanceId} (${sandboxId} g${generation}, ${phase})`;
}

/** Also of one that has lost its labels, and has only its name. */
export function numbered({ sandboxId, generation }: Pick<InstanceRef, "sandboxId" | "generation">): string {
  return `${sandboxId} g${generation}`;
}

export function by(actor: Actor, id: string): string {
  return `${actor.name}#${actor.epoch} ${id}`;
}

/** What it sent may arrive after its death: then it is what it knew in its last life that counts. */
export function knew<T>(map: ReadonlyMap<string, T>, { name, epoch }: Actor, id: string): T | undefined {
  return map.get(`${name}#${epoch} ${id}`) ?? map.get(`${name}#${epoch - 1} ${id}`);
}
