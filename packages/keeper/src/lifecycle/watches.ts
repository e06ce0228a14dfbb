import type { Deadman } from "./deadman.ts";

/**
 * Servers that hold a connection to see our end. For us it is the other way round: as long as it is held there is a
 * server, and nobody has to say so again and again.
 */
export class Watches {
  readonly #deadman: Deadman;
  readonly #ends = new Set<() => void>();

  constructor(deadman: Deadman) {
    this.#deadman = deadman;
  }

  /** An answer without end. Its first byte says that it is held. */
  hold(): Response {
    const unwatched = this.#deadman.watched();
    let end = () => {};
    const body = new ReadableStream<Uint8Array>({
      start: (to) => {
        to.enqueue(Buffer.from("\n"));
        end = () => to.close();
        this.#ends.add(end);
      },
      cancel: () => {
        this.#ends.delete(end);
        unwatched();
      },
    });
    return new Response(body, { headers: { "Cache-Control": "no-store" } });
  }

  /** So that the HTTP server has nothing left to wait for. May be called twice. */
  close(): void {
    for (const end of this.#ends) end();
    this.#ends.clear();
  }
}
