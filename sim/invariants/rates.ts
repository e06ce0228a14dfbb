import type { Commit } from "../book.ts";
import type { Scene } from "./scene.ts";

/** A launch with its connection, a stop with its repeats and some faults in between fit in it easily. */
const MOST_CALLS_A_MINUTE = 40;
const MOST_COMMITS_A_MINUTE = 120;
const MINUTE_MS = 60_000;

/** L4: No busy loop: bounded transitions per row, and bounded provider calls. Counted in fixed minutes of virtual time. */
export class Rates {
  readonly #scene: Scene;
  readonly #counts = new Map<string, { minute: number; count: number }>();
  /** Calls by what was asked of which backend, since it was last set to nothing. */
  readonly calls = new Map<string, number>();

  constructor(scene: Scene) {
    this.#scene = scene;
  }

  committed({ sandboxId, ticket }: Commit): void {
    if (ticket !== undefined) this.#count(`transitions of ${sandboxId}`, MOST_COMMITS_A_MINUTE);
  }

  asked(instanceId: string, op: string): void {
    this.#count(`${op} calls about ${instanceId}`, MOST_CALLS_A_MINUTE);
  }

  called(kind: string, op: string): void {
    const key = `${kind} ${op}`;
    this.calls.set(key, (this.calls.get(key) ?? 0) + 1);
  }

  #count(what: string, most: number): void {
    const minute = Math.floor(this.#scene.scheduler.now / MINUTE_MS);
    const last = this.#counts.get(what);
    const count = last?.minute === minute ? last.count + 1 : 1;
    this.#counts.set(what, { minute, count });
    this.#scene.judge.demand(count <= most, "L4", () => `${count} ${what} within a minute`);
  }
}
