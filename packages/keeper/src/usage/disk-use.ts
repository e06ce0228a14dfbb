import { lstat, opendir } from "node:fs/promises";
import { join } from "node:path";

// A walk is not free: it is made again only so long after the last one has ended.
const EVERY_MS = 15_000;
// About a second of walking. A checkout with all its packages has fewer.
const MOST_ENTRIES = 100_000;
/** Whoever asks first waits so long for it. */
const FIRST_WAIT_MS = 300;

interface Measured {
  readonly diskBytes: number;
  readonly isDiskWhole: boolean;
}

/** How much the files below some directories take, as of a little while ago. Nobody walks while nobody asks. */
export class DiskUse {
  readonly #dirs: readonly string[];
  #last: Measured = { diskBytes: 0, isDiskWhole: false };
  #endedAt = Number.NEGATIVE_INFINITY;
  #walking: Promise<void> | undefined;

  constructor(dirs: readonly string[]) {
    this.#dirs = dirs.filter((dir) => !dirs.some((other) => other !== dir && dir.startsWith(`${other}/`)));
  }

  async measured(): Promise<Measured> {
    const isFirst = this.#endedAt === Number.NEGATIVE_INFINITY;
    if (performance.now() - this.#endedAt >= EVERY_MS) this.#walking ??= this.#walk();
    if (isFirst) await Promise.race([this.#walking, Bun.sleep(FIRST_WAIT_MS)]);
    return this.#last;
  }

  async #walk(): Promise<void> {
    const walk = { entries: 0, bytes: 0 };
    for (const dir of new Set(this.#dirs)) await add(dir, walk);
    this.#last = { diskBytes: walk.bytes, isDiskWhole: walk.entries < MOST_ENTRIES };
    this.#endedAt = performance.now();
    this.#walking = undefined;
  }
}

/** What vanishes while we look, and what cannot be looked into, counts nothing. Links are not followed. */
async function add(dir: string, walk: { entries: number; bytes: number }): Promise<void> {
  try {
    for await (const { name } of await opendir(dir)) {
      if (++walk.entries >= MOST_ENTRIES) return;
      const path = join(dir, name);
      const found = await lstat(path).catch(() => undefined);
      walk.bytes += (found?.blocks ?? 0) * 512;
      if (found?.isDirectory()) await add(path, walk);
    }
  } catch {}
}
