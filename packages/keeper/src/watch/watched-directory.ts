/** One directory of a watched tree. Its path follows from its parents, so a move of one moves all that is in it. */
export class WatchedDirectory {
  readonly children = new Map<string, WatchedDirectory>();
  /** The kernel's number, once it is watched. */
  watch = -1;
  #name: string;
  #parent: WatchedDirectory | undefined;

  constructor({ name, parent }: { name: string; parent: WatchedDirectory | undefined }) {
    this.#name = name;
    this.#parent = parent;
  }

  get name(): string {
    return this.#name;
  }

  get parent(): WatchedDirectory | undefined {
    return this.#parent;
  }

  get path(): string {
    return this.#parent === undefined ? this.#name || "/" : this.#parent.pathOf(this.#name);
  }

  pathOf(name: string): string {
    return `${this.#parent === undefined ? this.#name : this.path}/${name}`;
  }

  moveTo(parent: WatchedDirectory, name: string): void {
    this.leave();
    this.#parent = parent;
    this.#name = name;
    parent.children.set(name, this);
  }

  /** Nobody finds it any more from above. */
  leave(): void {
    if (this.#parent?.children.get(this.#name) === this) this.#parent.children.delete(this.#name);
  }

  /** Itself and all below. */
  *all(): Generator<WatchedDirectory> {
    yield this;
    for (const child of this.children.values()) yield* child.all();
  }
}
