import type { WatchedDirectory } from "./watched-directory.ts";

interface Left {
  readonly directory: WatchedDirectory;
  readonly name: string;
  readonly isDirectory: boolean;
}

/**
 * First halves of moves. The kernel says "moved from" and then "moved to", with the same cookie, but the second half
 * comes only if the goal is watched, too; and a read may end between the two.
 */
export class UnpairedMoves {
  readonly #byCookie = new Map<number, Left & { isOld: boolean }>();
  readonly #onDeparture: (left: Left) => void;

  /** `onDeparture`: there will be no second half; it has left the tree. */
  constructor(onDeparture: (left: Left) => void) {
    this.#onDeparture = onDeparture;
  }

  get size(): number {
    return this.#byCookie.size;
  }

  add(cookie: number, left: Left): void {
    this.#byCookie.set(cookie, { ...left, isOld: false });
  }

  claim(cookie: number): Left | undefined {
    const left = this.#byCookie.get(cookie);
    this.#byCookie.delete(cookie);
    return left;
  }

  /** Something else is under its old name now. */
  settle({ directory, name }: Pick<Left, "directory" | "name">): void {
    for (const [cookie, left] of this.#byCookie)
      if (left.directory === directory && left.name === name) this.#depart(cookie, left);
  }

  /** Those that were there at the last call are given up. */
  settleOld(): void {
    for (const [cookie, left] of this.#byCookie) {
      if (left.isOld) this.#depart(cookie, left);
      else left.isOld = true;
    }
  }

  #depart(cookie: number, left: Left): void {
    this.#byCookie.delete(cookie);
    this.#onDeparture(left);
  }
}
