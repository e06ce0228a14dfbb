import { closeSync, openSync, readSync } from "node:fs";
import { join } from "node:path";

/** Counts how often the kernel has killed something in this sandbox for lack of memory. */
export class OomCounter {
  readonly #fd: number | undefined;
  readonly #buffer = Buffer.alloc(4096);

  /** memory.events in cgroup v2, memory.oom_control in v1; both have a line "oom_kill N". Held open: it is read for every run. */
  constructor(memoryCgroupDir: string | undefined) {
    if (memoryCgroupDir === undefined) return;
    this.#fd =
      openIfThere(join(memoryCgroupDir, "memory.events")) ??
      openIfThere(join(memoryCgroupDir, "memory.oom_control"));
  }

  /** `undefined` if it cannot be known. Compared before and after a run that died of a SIGKILL which was not ours. */
  read(): number | undefined {
    if (this.#fd === undefined) return undefined;
    const length = readSync(this.#fd, this.#buffer, 0, this.#buffer.length, 0);
    const match = /^oom_kill (\d+)$/m.exec(this.#buffer.toString("latin1", 0, length));
    return match === null ? undefined : Number(match[1]);
  }

  close(): void {
    if (this.#fd !== undefined) closeSync(this.#fd);
  }
}

function openIfThere(path: string): number | undefined {
  try {
    return openSync(path, "r");
  } catch {
    return undefined; // the other version of control groups, or none
  }
}
