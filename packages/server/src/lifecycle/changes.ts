import type { Clock, Holding, Store } from "@holdfast/core";
import type { Bell } from "./bell.ts";

/** Which sandboxes changed, in order. Who was away for longer looks at all of them. */
const KEPT = 4096;
/** A silent follower is told that it is quiet, so that a proxy does not cut it off. */
const QUIET_MS = 15_000;
/** Of what other servers write nothing is heard here: their followers look at everything, so often. */
const SHARED_LOOK_MS = 10_000;

export type ChangeNews =
  | { readonly type: "resync"; readonly cursor: string; readonly reason: string }
  | { readonly type: "changed"; readonly cursor: string; readonly holding: Holding }
  | { readonly type: "gone"; readonly cursor: string; readonly sandboxId: string };

export interface ChangesDeps {
  readonly store: Store;
  readonly bell: Bell;
  readonly clock: Clock;
  /** In every cursor: one of another server, or of this one before its restart, is known to be none of ours. */
  readonly owner: string;
}

/**
 * Every sandbox that changes, for those who watch all of them. A follower costs as much as there are changes, and a
 * slow one is told of many changes to one sandbox once.
 */
export class Changes {
  readonly #deps: ChangesDeps;
  #ids: string[] = [];
  /** The number of the first in `#ids`. */
  #first = 0;

  constructor(deps: ChangesDeps) {
    this.#deps = deps;
    deps.bell.onRing = (sandboxId) => this.#note(sandboxId);
  }

  /** From after the cursor; without one, from now. Begins with `resync` unless it can go on from there exactly. */
  async *follow(options: { since?: string; signal: AbortSignal }): AsyncGenerator<ChangeNews | "quiet"> {
    const { bell, clock, store } = this.#deps;
    const { since, signal } = options;
    const known = since === undefined ? undefined : this.#placeOf(since);
    let next = known ?? this.#end;
    if (known === undefined)
      yield this.#resync(next, since === undefined ? "this is where it begins" : "the cursor is too old");
    const ms = store.isShared ? SHARED_LOOK_MS : QUIET_MS;
    while (!signal.aborted) {
      // Before the look: what is written after it rings.
      const over = new AbortController();
      const rung = bell.wait(undefined, { ms, clock, signal: AbortSignal.any([signal, over.signal]) });
      const end = this.#end;
      if (next < this.#first) yield this.#resync(end, "there were more changes than are kept");
      else yield* this.#since(next, end);
      const isQuiet = next === end;
      next = end;
      if (!isQuiet) over.abort();
      await rung;
      if (!isQuiet || this.#end !== next) continue;
      yield store.isShared ? this.#resync(next, "other servers may have changed something") : "quiet";
    }
  }

  async *#since(next: number, end: number): AsyncGenerator<ChangeNews> {
    const ids = new Set(this.#ids.slice(next - this.#first, end - this.#first));
    let left = ids.size;
    for (const sandboxId of ids) {
      // Whoever leaves in the middle comes back to all of them: a change is better told twice than never.
      const cursor = this.#cursor(--left === 0 ? end : next);
      const holding = await this.#deps.store.holding(sandboxId);
      yield holding === undefined
        ? { type: "gone", cursor, sandboxId }
        : { type: "changed", cursor, holding };
    }
  }

  get #end(): number {
    return this.#first + this.#ids.length;
  }

  #note(sandboxId: string): void {
    this.#ids.push(sandboxId);
    if (this.#ids.length < 2 * KEPT) return;
    this.#ids = this.#ids.slice(-KEPT);
    this.#first += KEPT;
  }

  #resync(at: number, reason: string): ChangeNews {
    return { type: "resync", cursor: this.#cursor(at), reason };
  }

  #cursor(at: number): string {
    return `${this.#deps.owner}-${at}`;
  }

  #placeOf(cursor: string): number | undefined {
    const prefix = `${this.#deps.owner}-`;
    const at = cursor.startsWith(prefix) ? Number(cursor.slice(prefix.length)) : Number.NaN;
    return at >= this.#first && at <= this.#end ? at : undefined;
  }
}
