import { TAGS, tagOf } from "./oom-score.ts";
import { listProcesses } from "./proc-table.ts";

/**
 * A tag by which an orphan's run is known. `env -i` takes the marker off, `setsid` the group and the session, and the
 * death of its parent the descent; no event tells PID 1 of any of it. One thing the kernel hands down from parent to
 * child through all of that: the OOM score adjustment (oom-score.ts), which the keeper raises for its work anyway. So
 * each run has a small number of its own on top of it.
 *
 *   - A tag means one run for as long as anything carries it. It is free again when two looks in a row, after the end
 *     of its run, found nobody with it.
 *   - Any program may set its own score, and a keeper inside a sandbox sets those of its children. So a tag says
 *     something only of an orphan that nothing else says anything of (tree.ts).
 *   - Only PID 1 gives out tags: it alone sees everything that could carry one.
 *
 * With all tags taken a run has none, and what it hides from us is listed as unattributed.
 */
export class TagPool {
  readonly #free: number[] = Array.from({ length: TAGS }, (_, i) => i + 1);
  readonly #owners = new Map<number, { readonly marker: string; hasEnded: boolean }>();
  readonly #carried: () => ReadonlySet<number>;
  readonly #now: () => number;
  #nextLookAt = 0;

  constructor({ carried = carriedTags, now = () => performance.now() } = {}) {
    this.#carried = carried;
    this.#now = now;
  }

  /** `undefined` if all are taken. */
  take(marker: string): number | undefined {
    if (this.#free.length === 0) this.#freeUnused();
    const tag = this.#free.shift();
    if (tag === undefined) return undefined;
    this.#owners.set(tag, { marker, hasEnded: false });
    return tag;
  }

  /** The run's own program has ended; what it left behind may still carry the tag. */
  ended(tag: number | undefined): void {
    const owner = tag === undefined ? undefined : this.#owners.get(tag);
    if (owner !== undefined) owner.hasEnded = true;
  }

  /** The marker of the run that this tag means. */
  ownerOf(tag: number | undefined): string | undefined {
    return tag === undefined ? undefined : this.#owners.get(tag)?.marker;
  }

  #freeUnused(): void {
    const begun = this.#now();
    if (begun < this.#nextLookAt) return;
    const first = this.#carried();
    const second = this.#carried();
    for (const [tag, { hasEnded }] of this.#owners) {
      if (!hasEnded || first.has(tag) || second.has(tag)) continue;
      this.#owners.delete(tag);
      this.#free.push(tag);
    }
    const end = this.#now();
    this.#nextLookAt = end + (end - begun) * LOOKS_SHARE;
  }
}

// With thousands of processes a look takes long: looks get at most one fiftieth of the time.
const LOOKS_SHARE = 50;

function carriedTags(): Set<number> {
  return new Set(listProcesses().map(({ pid }) => tagOf(pid) ?? 0));
}
