import { closeSync, readSync } from "node:fs";
import { bytesWaiting, isAbandoned, makeNonBlocking, type Pipe, resizePipe } from "./libc.ts";

// What a pipe holds at first. One that was full when it was read belongs to a flood: a larger one saves the program
// and us most of the turns that we take.
const PIPE_BYTES = 64 * 1024;
const FLOOD_PIPE_BYTES = 512 * 1024;
// What is taken of a flood at once. Writing it to the log costs two thirds of what its four parts would.
const BATCH_BYTES = 256 * 1024;
// Most commands have ended by then. What they wrote is in the pipe, and is read from there at once: to listen to two
// pipes, and to stop, takes 0.02 to 0.03 ms.
const LISTENS_AFTER_MS = 2;

/**
 * Reads one pipe until its end, event by event once its program has run for a moment. The program may be over long
 * before that: a background child can hold the pipe open. Such late output is read and dropped, because a closed pipe
 * would kill the child.
 *
 * The end that is written to is kept open here as well until the output has settled. The runtime wakes two threads when
 * a pipe ends: whoever waits for the program has its answer before that.
 */
export class Pump {
  readonly #fd: number;
  readonly #writeFd: number;
  readonly #beginning = setTimeout(() => void this.#run(), LISTENS_AFTER_MS);
  readonly #room: () => Promise<void> | undefined;
  #isSettling = false;
  /** Ends a wait for room. */
  #goOn = () => {};
  #take: ((...pieces: Uint8Array[]) => void) | undefined;
  #gathered: Uint8Array[] = [];
  #gatheredBytes = 0;
  /** Nothing has been read that is not here yet. */
  #isWaiting = true;
  #isListening = false;
  #ended = false;
  #enlarged = false;
  /** Counts what arrived, so that a pause can be told from a flow. */
  #arrivals = 0;

  /** Nothing is read while `room` is waited for: then the program waits, too, once its pipe is full. */
  constructor(
    { readFd, writeFd }: Pipe,
    to: { take: (...pieces: Uint8Array[]) => void; room: () => Promise<void> | undefined },
  ) {
    this.#fd = readFd;
    this.#writeFd = writeFd;
    this.#take = to.take;
    this.#room = to.room;
  }

  /**
   * Resolves when all that the program wrote before this call has been taken, and not later: not at the end of the
   * pipe. Nothing is taken any more afterwards.
   */
  async settle(): Promise<void> {
    // What is left is a pipe's content at most: nobody needs to be waited for any more.
    this.#isSettling = true;
    clearTimeout(this.#beginning);
    this.#goOn();
    if (this.#isWaiting) this.#readWhatIsThere();
    else await this.#quiet();
    this.#hand();
    this.#take = undefined;
    setImmediate(() => this.#release());
  }

  #release(): void {
    closeSync(this.#writeFd);
    if (this.#isListening) return;
    if (isAbandoned(this.#fd)) closeSync(this.#fd);
    else void this.#run();
  }

  #readWhatIsThere(): void {
    for (let left = bytesWaiting(this.#fd); left > 0; ) {
      const piece = Buffer.allocUnsafe(Math.min(left, PIPE_BYTES));
      const count = readSync(this.#fd, piece);
      if (count === 0) return;
      this.#gather(piece.subarray(0, count));
      left -= count;
    }
  }

  /**
   * The kernel's count says what is still in the pipe; a full turn of the event loop without an arrival, that nothing is
   * on its way between the pipe and us.
   */
  async #quiet(): Promise<void> {
    for (let quiet = 0; quiet < 2 && !this.#ended; ) {
      const before = this.#arrivals;
      await nextTurn();
      quiet = bytesWaiting(this.#fd) === 0 && this.#arrivals === before ? quiet + 1 : 0;
    }
  }

  /** In a flood, several chunks are taken at once. None waits for one that is not there yet. */
  #gather(bytes: Uint8Array): void {
    if (this.#gatheredBytes + bytes.length > BATCH_BYTES) this.#hand();
    this.#gathered.push(bytes);
    this.#gatheredBytes += bytes.length;
    const goesOn = this.#enlarged && this.#gatheredBytes < BATCH_BYTES && bytesWaiting(this.#fd) > 0;
    if (!goesOn) this.#hand();
  }

  #hand(): void {
    const pieces = this.#gathered;
    if (pieces.length === 0) return;
    this.#gathered = [];
    this.#gatheredBytes = 0;
    this.#take?.(...pieces);
  }

  #enlarge(): void {
    if (this.#enlarged) return;
    this.#enlarged = true;
    resizePipe(this.#fd, FLOOD_PIPE_BYTES);
  }

  async #run(): Promise<void> {
    this.#isListening = true;
    try {
      makeNonBlocking(this.#fd);
      const reader = Bun.file(this.#fd).stream().getReader();
      for (;;) {
        this.#isWaiting = true;
        const { value, done } = await reader.read();
        this.#isWaiting = false;
        if (done) break;
        this.#arrivals += 1;
        if (value.length >= PIPE_BYTES) this.#enlarge();
        this.#gather(value);
        if (this.#enlarged) await nextTurn(); // the rest of the keeper has its turn, too, and the pipe fills up
        const room = this.#isSettling ? undefined : this.#room();
        if (room === undefined) continue;
        this.#hand(); // whoever reads the log must not wait for it as well
        await new Promise<void>((resolve) => {
          this.#goOn = resolve;
          void room.then(resolve);
        });
      }
    } catch {
      // A pipe that cannot be read any more is at its end for us.
    } finally {
      this.#isWaiting = false;
      this.#ended = true;
      closeSync(this.#fd);
    }
  }
}

function nextTurn(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}
