import { mkdtempSync, readdirSync, readFileSync, rmSync, truncateSync, writeFileSync } from "node:fs";
import { freemem, tmpdir } from "node:os";
import { join } from "node:path";

/** How much the anonymous memory of some processes grows at most, looked at ten times a second. */
export class PeakMemory implements Disposable {
  readonly #pids: readonly number[];
  readonly #first: number[];
  readonly #most: number[];
  readonly #timer: Timer;

  constructor(pids: readonly number[]) {
    this.#pids = pids;
    this.#first = pids.map(anonymousMiB);
    this.#most = [...this.#first];
    this.#timer = setInterval(() => this.#look(), 100);
  }

  grownMiB(): number[] {
    this.#look();
    return this.#most.map((most, i) => most - (this.#first[i] ?? 0));
  }

  #look(): void {
    for (const [i, pid] of this.#pids.entries())
      this.#most[i] = Math.max(this.#most[i] ?? 0, anonymousMiB(pid));
  }

  [Symbol.dispose](): void {
    clearInterval(this.#timer);
  }
}

export function anonymousMiB(pid: number): number {
  const status = readFileSync(`/proc/${pid}/status`, "utf8");
  return Number(/^RssAnon:\s+(\d+)/m.exec(status)?.[1]) / 1024;
}

/** Proportional memory of every process with one of these in its command line: what is shared counts once, for all. */
export function pssMiB(names: readonly string[]): number {
  let total = 0;
  for (const pid of readdirSync("/proc").filter((name) => /^\d+$/.test(name))) {
    try {
      const line = readFileSync(`/proc/${pid}/cmdline`, "utf8");
      if (!names.some((name) => line.includes(name))) continue;
      const rollup = readFileSync(`/proc/${pid}/smaps_rollup`, "utf8");
      total += Number(/^Pss: +(\d+)/m.exec(rollup)?.[1] ?? 0);
    } catch {
      // it ended while we looked
    }
  }
  return total / 1024;
}

/**
 * A virtual machine may have given its free memory back to its host, and whoever fills the page cache first pays for
 * having it again: ten times what the second one pays. So the cache is full of something else, which costs nothing to
 * throw away, while somebody is measured who writes much.
 */
export async function fullPageCache({ atMostBytes }: { atMostBytes: number }): Promise<Disposable> {
  const dir = mkdtempSync(join(tmpdir(), "holdfast-bench-"));
  const holes = join(dir, "holes");
  writeFileSync(holes, "");
  truncateSync(holes, Math.min(atMostBytes, Math.floor(freemem() * 0.9)));
  for await (const _ of Bun.file(holes).stream());
  return { [Symbol.dispose]: () => rmSync(dir, { recursive: true, force: true }) };
}
