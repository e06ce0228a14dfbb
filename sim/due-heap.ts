/** The earliest first; of two with the same time, the one that was made first. */
export class DueHeap<T extends { readonly due: number; readonly id: number }> {
  readonly #items: T[] = [];

  push(item: T): void {
    let index = this.#items.push(item) - 1;
    while (index > 0) {
      const parent = (index - 1) >> 1;
      if (!this.#isBefore(index, parent)) return;
      this.#swap(index, parent);
      index = parent;
    }
  }

  peek(): T | undefined {
    return this.#items[0];
  }

  pop(): T | undefined {
    const first = this.#items[0];
    const last = this.#items.pop();
    if (last === undefined || last === first) return first;
    this.#items[0] = last;
    this.#sink();
    return first;
  }

  all(): readonly T[] {
    return this.#items;
  }

  #sink(): void {
    let index = 0;
    for (;;) {
      const left = index * 2 + 1;
      let least = index;
      if (this.#isBefore(left, least)) least = left;
      if (this.#isBefore(left + 1, least)) least = left + 1;
      if (least === index) return;
      this.#swap(index, least);
      index = least;
    }
  }

  #isBefore(a: number, b: number): boolean {
    const first = this.#items[a];
    const second = this.#items[b];
    if (first === undefined || second === undefined) return false;
    return first.due < second.due || (first.due === second.due && first.id < second.id);
  }

  #swap(a: number, b: number): void {
    const first = this.#items[a];
    const second = this.#items[b];
    if (first === undefined || second === undefined) return;
    this.#items[a] = second;
    this.#items[b] = first;
  }
}
