/** The event loop is others' too: after so much work it gets its turn. */
const SLICE_MS = 5;

/** Lets others run when this one has had its time. */
export class TimeSlice {
  #since = performance.now();

  async pause(): Promise<void> {
    if (performance.now() - this.#since < SLICE_MS) return;
    await new Promise((resolve) => setImmediate(resolve));
    this.#since = performance.now();
  }
}
