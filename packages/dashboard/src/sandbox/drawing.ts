/** What a screen has of output that is not drawn yet: enough to keep it busy, little enough that Ctrl-C is felt at once. */
const MOST_WAITING = 256 * 1024;

/**
 * Output on its way to a screen. Whoever adds waits while much is not drawn yet: so a fast program waits for the page,
 * and the page never has more than it can draw in a moment.
 */
export class Drawing {
  readonly #screen: { write(data: Uint8Array | string, drawn: () => void): void };
  #waiting = 0;
  #room: (() => void) | undefined;

  constructor(screen: { write(data: Uint8Array | string, drawn: () => void): void }) {
    this.#screen = screen;
  }

  async add(data: Uint8Array | string): Promise<void> {
    this.#waiting += data.length;
    this.#screen.write(data, () => {
      this.#waiting -= data.length;
      if (this.#waiting <= MOST_WAITING / 2) this.#room?.();
    });
    if (this.#waiting <= MOST_WAITING) return;
    await new Promise<void>((resolve) => {
      this.#room = resolve;
    });
  }
}
