import { readFile, statfs } from "node:fs/promises";
import { dirname, join } from "node:path";
import type { Capacity } from "@holdfast/core";
import { HoldfastError } from "@holdfast/protocol";
import { isCode } from "./atomic-file.ts";
import type { CgroupHost } from "./cgroup-host.ts";

/** Measures what this machine has for sandboxes. */
export async function measureCapacity(
  dataDir: string,
  cgroups: () => Promise<CgroupHost>,
): Promise<Capacity> {
  try {
    const { bsize, blocks, bavail, files, ffree } = await statfs(dataDir, { bigint: true });
    return {
      slots: null,
      memoryBytes: await memoryBytes(await cgroups()),
      disk: {
        sizeBytes: Number(bsize * blocks),
        freeBytes: Number(bsize * bavail),
        inodes: Number(files),
        freeInodes: Number(ffree),
      },
    };
  } catch (cause) {
    const why = cause instanceof Error ? cause.message : String(cause);
    throw new HoldfastError("capacity_unknown", `cannot measure what this machine has: ${why}`, {
      hint: `Nothing was changed. Look whether ${dataDir} is there and /proc and /sys are mounted, and try again.`,
      cause,
      started: "no",
    });
  }
}

/** The machine's memory, or the limit of the control group that all sandboxes are in, if that is smaller. */
async function memoryBytes(cgroups: CgroupHost): Promise<number> {
  const limits = await Promise.all((await limitFiles(cgroups)).map(readLimit));
  return Math.min(totalMemory(await readFile("/proc/meminfo", "utf8")), ...limits);
}

export function totalMemory(meminfo: string): number {
  const kibibytes = Number(/^MemTotal:\s+(\d+) kB$/m.exec(meminfo)?.[1]);
  if (Number.isNaN(kibibytes)) throw new Error("/proc/meminfo does not say how much memory there is");
  return kibibytes * 1024;
}

/** Our own group and the one that it is in: a container's limit is seen there. */
async function limitFiles(cgroups: CgroupHost): Promise<string[]> {
  switch (cgroups.kind) {
    case "v1": {
      const { memory } = cgroups.parents;
      return memory === undefined ? [] : aroundOf(memory, "memory.limit_in_bytes");
    }
    case "v2":
      return aroundOf(cgroups.parent, "memory.max");
    case "systemd":
    case "unavailable":
      return ownGroupFiles(await readFile("/proc/self/cgroup", "utf8"));
    default:
      return cgroups satisfies never;
  }
}

function aroundOf(group: string, file: string): string[] {
  return [join(group, file), join(dirname(group), file)];
}

/** Where we cannot make groups, sandboxes stay below the server's own one: all limits on the way up count. */
export function ownGroupFiles(ownGroups: string): string[] {
  const v1 = /^\d+:(?:[^:]*,)?memory(?:,[^:]*)?:(.*)$/m.exec(ownGroups)?.[1];
  const [root, path, file] =
    v1 === undefined
      ? ["/sys/fs/cgroup", /^0::(.*)$/m.exec(ownGroups)?.[1] ?? "/", "memory.max"]
      : ["/sys/fs/cgroup/memory", v1, "memory.limit_in_bytes"];
  const parts = path.split("/").filter(Boolean);
  return [...parts.keys(), parts.length].map((depth) => join(root, ...parts.slice(0, depth), file));
}

/** A group without a limit says "max", or has no such file. */
async function readLimit(file: string): Promise<number> {
  try {
    const limit = Number((await readFile(file, "utf8")).trim());
    return Number.isNaN(limit) ? Number.POSITIVE_INFINITY : limit;
  } catch (error) {
    if (isCode(error, "ENOENT")) return Number.POSITIVE_INFINITY;
    throw error;
  }
}
