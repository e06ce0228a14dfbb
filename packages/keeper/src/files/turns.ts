// About a millisecond of file calls.
const AT_A_TIME = 200;

/** Lets others have the thread now and then while many small things are done. */
export class Turns {
  #done = 0;

  next(): Promise<void> | undefined {
    this.#done += 1;
    return this.#done % AT_A_TIME === 0 ? new Promise((resolve) => setImmediate(resolve)) : undefined;
  }
}
