import { HoldfastError } from "@holdfast/protocol";
import { FileWatch, type WatchTarget } from "./file-watch.ts";

// A watch without a client stays this long: who lost its connection goes on where it was.
const LINGER_MS = 60_000;
// Each has a queue of the kernel's, of which a user has 128 for everything.
const MOST_WATCHES = 32;

interface Entry {
  readonly watch: FileWatch;
  clients: number;
  timer: Timer | undefined;
}

/** All that is watched. Clients that want the same share it. */
export class FileWatches {
  readonly #entries = new Map<string, Entry>();

  /** The watch, begun; and how to leave it, which may be called twice. */
  async join(target: WatchTarget): Promise<{ watch: FileWatch; leave: () => void }> {
    const key = `${target.recursive} ${target.path}`;
    const known = this.#entries.get(key);
    // One that is over has its last readers still; what is at the path now is another thing.
    const entry = known === undefined || known.watch.isOver ? this.#add(key, target) : known;
    clearTimeout(entry.timer);
    entry.clients += 1;
    const leave = once(() => this.#leave(key, entry));
    try {
      await entry.watch.begin();
      return { watch: entry.watch, leave };
    } catch (error) {
      this.#remove(key, entry);
      throw error;
    }
  }

  /** May be called twice. */
  close(): void {
    for (const [key, entry] of this.#entries) this.#remove(key, entry);
  }

  #add(key: string, target: WatchTarget): Entry {
    if (this.#entries.size >= MOST_WATCHES) this.#dropIdle();
    const entry: Entry = { watch: new FileWatch(target), clients: 0, timer: undefined };
    this.#entries.set(key, entry);
    return entry;
  }

  #dropIdle(): void {
    const idle = [...this.#entries].find(([, { clients }]) => clients === 0);
    if (idle === undefined) throw full();
    this.#remove(...idle);
  }

  #leave(key: string, entry: Entry): void {
    entry.clients -= 1;
    if (entry.clients > 0) return;
    entry.timer = setTimeout(() => this.#remove(key, entry), entry.watch.isOver ? 0 : LINGER_MS);
    entry.timer.unref();
  }

  #remove(key: string, entry: Entry): void {
    clearTimeout(entry.timer);
    entry.watch.close();
    if (this.#entries.get(key) === entry) this.#entries.delete(key);
  }
}

function full(): HoldfastError {
  return new HoldfastError("limit_reached", `${MOST_WATCHES} paths of this sandbox are watched already`, {
    hint: "watch a directory that has several of them in it",
  });
}

function once(work: () => void): () => void {
  let done = false;
  return () => {
    if (!done) work();
    done = true;
  };
}
