import {
  type Clock,
  type CopyOptions,
  type KnownSnapshot,
  type SnapshotContent,
  type SnapshotRow,
  type Store,
  sizeOf,
  type TimelineEntry,
} from "@holdfast/core";
import { HoldfastError } from "@holdfast/protocol";
import type { Log } from "../log.ts";
import { messageOf } from "./effects.ts";

/** So long after its last word a server counts as dead for whoever shares its store. */
export const BUSY_MS = 30_000;
/** How often it says how far it is. */
const BEAT_MS = 1_000;
/** Why one failed is told for so long; then its record goes by itself. */
export const KEEP_FAILED_MS = 86_400_000;

interface WorkDeps {
  readonly store: Store;
  readonly clock: Clock;
  readonly log: Log;
  readonly closing: AbortSignal;
  readonly row: KnownSnapshot;
}

/** The making of one snapshot: it says in the row how far it is, and ends when the row is taken from it. */
export class SnapshotWork {
  readonly #deps: WorkDeps;
  readonly #taken = new AbortController();
  #row: KnownSnapshot;
  #copiedBytes = 0;

  constructor(deps: WorkDeps) {
    this.#deps = deps;
    this.#row = deps.row;
  }

  async run(
    fill: (options: Pick<CopyOptions, "signal" | "onProgress">) => Promise<SnapshotContent>,
  ): Promise<void> {
    const { clock, closing, log } = this.#deps;
    const over = new AbortController();
    const signal = AbortSignal.any([this.#taken.signal, closing]);
    const onProgress = (bytes: number): void => {
      this.#copiedBytes = bytes;
    };
    const startedAt = clock.now();
    const beating = this.#beat(AbortSignal.any([over.signal, signal]));
    const done = await settled(fill({ signal, onProgress }));
    over.abort();
    await beating;
    if (closing.aborted) return;
    const ms = Math.round(clock.now() - startedAt);
    if ("content" in done) await this.#conclude(done.content, ms);
    else if (!this.#taken.signal.aborted) await this.#fail(failureOf(done.error));
    log.info("snapshot", { snapshot: this.#row.id, phase: this.#row.phase, ms });
  }

  async #beat(until: AbortSignal): Promise<void> {
    const { clock, log } = this.#deps;
    while (!until.aborted) {
      await clock.sleep(BEAT_MS, until);
      if (until.aborted) return;
      try {
        await this.#say();
      } catch (error) {
        // The copy goes on: whether it is still wanted shows at the next word, or at its end.
        log.warn("progress not written", { snapshot: this.#row.id, error: messageOf(error) });
      }
    }
  }

  async #say(): Promise<void> {
    const { store } = this.#deps;
    const { id, owner } = this.#row;
    const busyUntil = (await store.now()) + BUSY_MS;
    const saved = await store.saveSnapshot(this.#row, { copiedBytes: this.#copiedBytes, busyUntil });
    // Our own word before may have been written although we were told that it was not.
    const row = saved ?? (await store.snapshot(id));
    if (row?.phase === "making" && row.owner === owner) this.#row = row;
    else this.#taken.abort();
  }

  async #conclude(content: SnapshotContent, ms: number): Promise<void> {
    const { store } = this.#deps;
    const { files, sizeBytes } = sizeOf(content);
    const copiedBytes = Math.max(this.#copiedBytes, sizeBytes);
    const busyUntil = neededUntil(this.#row, await store.now());
    const saved = await store.saveSnapshot(this.#row, { ...content, copiedBytes, phase: "ready", busyUntil });
    if (saved === undefined) return;
    this.#row = saved;
    await this.#note({ type: "snapshot_made", detail: { ...this.#named(), files, sizeBytes, ms } });
  }

  async #fail(failure: string): Promise<void> {
    const { store } = this.#deps;
    const expiresAt = this.#row.expiresAt ?? (await store.now()) + KEEP_FAILED_MS;
    const saved = await store.saveSnapshot(this.#row, { phase: "failed", failure, expiresAt, busyUntil: 0 });
    if (saved === undefined) return;
    this.#row = saved;
    await this.#note({ type: "snapshot_failed", detail: { ...this.#named(), error: failure } });
  }

  #named(): { snapshotId: string; name: string } {
    return { snapshotId: this.#row.id, name: this.#row.name };
  }

  /** Into the timeline of its sandbox, if that is still there. */
  async #note(entry: TimelineEntry): Promise<void> {
    const { store } = this.#deps;
    for (;;) {
      const holding = await store.holding(this.#row.sandboxId);
      if (holding === undefined || (await store.save(holding, { entries: [entry] })) !== undefined) return;
    }
  }
}

const NOTHING = "there is nothing to copy";

function failureOf(error: unknown): string {
  const isNothing = error instanceof HoldfastError && error.code === "wrong_state";
  return isNothing ? `${NOTHING}: ${error.message}` : messageOf(error);
}

/** It failed because there are no files: another attempt would find none, either. */
export function foundNothing({ phase, failure }: SnapshotRow): boolean {
  return phase === "failed" && failure?.startsWith(NOTHING) === true;
}

/** A fork's own is needed by whoever forks, or comes again after a server died in it; others by nobody in particular. */
export function neededUntil({ origin }: SnapshotRow, now: number): number {
  return origin === "fork" ? now + BUSY_MS : 0;
}

async function settled(
  work: Promise<SnapshotContent>,
): Promise<{ content: SnapshotContent } | { error: unknown }> {
  try {
    return { content: await work };
  } catch (error) {
    return { error };
  }
}
