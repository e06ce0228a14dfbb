import type { Holding, Lease, RestoreProgress } from "@holdfast/core";
import type { EffectDeps } from "./effects.ts";
import type { Shift } from "./shift.ts";

/** Who waits sees that it goes on; what takes a moment is not worth a word. */
const TELL_EVERY_MS = 2_000;

type Launching = Holding & { lease: Lease };

/** Writes into the timeline how far the copying of a snapshot is, while a launch waits for it. */
export class RestoreReport {
  readonly #deps: Pick<EffectDeps, "store" | "clock">;
  readonly #shift: Shift;
  #holding: Launching;
  #toldAt: number;
  #writing: Promise<void> = Promise.resolve();
  #isOver = false;

  constructor(holding: Launching, shift: Shift, deps: Pick<EffectDeps, "store" | "clock">) {
    this.#deps = deps;
    this.#shift = shift;
    this.#holding = holding;
    this.#toldAt = deps.clock.now();
  }

  tell(progress: RestoreProgress): void {
    const now = this.#deps.clock.now();
    if (this.#isOver || now - this.#toldAt < TELL_EVERY_MS) return;
    this.#toldAt = now;
    // One after the other. A failure of the store is met by whoever writes next.
    this.#writing = this.#writing.then(() => this.#write(progress)).catch(() => undefined);
  }

  /** The row as it is after the last word. Later ones are not heard. */
  async end(): Promise<Launching> {
    this.#isOver = true;
    await this.#writing;
    return this.#holding;
  }

  async #write({ copiedBytes, sizeBytes }: RestoreProgress): Promise<void> {
    const detail = { snapshotId: this.#holding.sandbox.restoresFrom, copiedBytes, sizeBytes };
    const change = { entries: [{ type: "restoring", detail }] };
    const saved = await this.#deps.store.save(this.#holding, change, this.#shift.ticket);
    if (saved?.lease === undefined) this.#isOver = true;
    else this.#holding = saved as Launching;
  }
}
