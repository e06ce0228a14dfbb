import { readFileSync } from "node:fs";
import { join } from "node:path";
import type { Usage } from "@holdfast/protocol";

type MemoryUse = Pick<Usage, "memoryBytes" | "memoryBy" | "memoryLimitBytes">;

/** As the kernel counts it for the whole sandbox, where that can be read inside; else what each process has for itself. */
export function memoryUse(cgroupDir: string | undefined, pids: readonly number[]): MemoryUse {
  return (cgroupDir === undefined ? undefined : ofGroup(cgroupDir)) ?? ofProcesses(pids);
}

/** Files of cgroup v2, and of v1. What can be dropped at once, because it is also on the disk, does not count. */
function ofGroup(dir: string): MemoryUse | undefined {
  const used = number(join(dir, "memory.current")) ?? number(join(dir, "memory.usage_in_bytes"));
  if (used === undefined) return undefined;
  const limit = number(join(dir, "memory.max")) ?? number(join(dir, "memory.limit_in_bytes"));
  const dropped = /^inactive_file (\d+)$/m.exec(text(join(dir, "memory.stat")) ?? "")?.[1];
  const isLimited = limit !== undefined && limit < UNLIMITED_BYTES;
  return {
    memoryBytes: Math.max(0, used - Number(dropped ?? 0)),
    memoryBy: "cgroup",
    ...(isLimited && { memoryLimitBytes: limit }),
  };
}

// cgroup v1 says "no limit" with the largest number of pages that it has.
const UNLIMITED_BYTES = 2 ** 60;
// On every machine that we run on.
const PAGE_BYTES = 4096;

function ofProcesses(pids: readonly number[]): MemoryUse {
  const pages = pids.map((pid) => {
    const [, resident = 0, shared = 0] = (text(`/proc/${pid}/statm`) ?? "").split(" ").map(Number);
    return Math.max(0, resident - shared);
  });
  return { memoryBytes: pages.reduce((sum, one) => sum + one, 0) * PAGE_BYTES, memoryBy: "processes" };
}

/** `undefined` if there is none, or if it is a word, such as `max`. */
function number(path: string): number | undefined {
  const read = text(path);
  return read !== undefined && /^\d+\s*$/.test(read) ? Number(read) : undefined;
}

function text(path: string): string | undefined {
  try {
    return readFileSync(path, "utf8");
  } catch {
    return undefined;
  }
}
