import { readdirSync, readFileSync } from "node:fs";

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

/** Proportional memory of every process with this text in its command line: what is shared counts once, for all. */
export function pssMiB(marker: string): number {
  let total = 0;
  for (const pid of readdirSync("/proc").filter((name) => /^\d+$/.test(name))) {
    try {
      if (!readFileSync(`/proc/${pid}/cmdline`, "utf8").includes(marker)) continue;
      const rollup = readFileSync(`/proc/${pid}/smaps_rollup`, "utf8");
      total += Number(/^Pss: +(\d+)/m.exec(rollup)?.[1] ?? 0);
    } catch {
      // it ended while we looked
    }
  }
  return total / 1024;
}
