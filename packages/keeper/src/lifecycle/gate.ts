import { HoldfastError } from "@holdfast/protocol/errors";
import type { UseClock } from "../engine/use-clock.ts";

// Long enough for a server to end the instance, short enough that one that died in between did no harm.
const LAPSES_AFTER_MS = 10_000;

/**
 * What work goes through. Each request is counted in the same step in which it is let in, so that whoever closes the
 * gate knows of all that came before, and nothing comes after.
 */
export class Gate {
  readonly #elapsed: () => number;
  readonly #use: UseClock;
  #inside = 0;
  #closedUntil = Number.NEGATIVE_INFINITY;

  constructor(options: { elapsed: () => number; use: UseClock }) {
    this.#elapsed = options.elapsed;
    this.#use = options.use;
  }

  /** Requests that were let in and are not answered yet. */
  get inside(): number {
    return this.#inside;
  }

  /** Lets a request in; the returned function says that it is over. What only ends something is let in always. */
  enter({ kind, what }: { kind: "work" | "end"; what: string }): () => void {
    if (kind === "work" && this.#elapsed() < this.#closedUntil) throw quiesced();
    this.#inside += 1;
    return () => {
      this.#inside -= 1;
      this.#use.note(`${what} was answered`);
    };
  }

  /** Refuses work for a while. Said again, the while begins anew. */
  close(): void {
    this.#closedUntil = this.#elapsed() + LAPSES_AFTER_MS;
  }

  /** May be called twice. */
  open(): void {
    this.#closedUntil = Number.NEGATIVE_INFINITY;
  }
}

function quiesced(): HoldfastError {
  return new HoldfastError("quiesced", "the instance is idle, is about to be stopped and takes no new work", {
    hint: "try again in a moment: the sandbox comes back with its files, or goes on if it was not stopped",
    started: "no",
  });
}
