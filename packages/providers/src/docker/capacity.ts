import { statfs } from "node:fs/promises";
import type { Capacity } from "@holdfast/core";
import { HoldfastError } from "@holdfast/protocol";
import type { Info } from "./engine-types.ts";

/** Measures what the daemon has for sandboxes: its memory, and the file system on which it keeps layers and volumes. */
export async function measureCapacity(
  info: Info,
  measureDisk = () => diskOf(info.DockerRootDir),
): Promise<Capacity> {
  try {
    return { slots: null, memoryBytes: info.MemTotal, disk: await measureDisk() };
  } catch (cause) {
    const why = cause instanceof Error ? cause.message : String(cause);
    throw new HoldfastError(
      "capacity_unknown",
      `cannot measure Docker's disk ${info.DockerRootDir}: ${why}`,
      {
        hint: "Nothing was changed. This user must be able to reach that directory, or the daemon to run a program in a container.",
        cause,
        started: "no",
      },
    );
  }
}

async function diskOf(path: string): Promise<Capacity["disk"]> {
  const { bsize, blocks, bavail, files, ffree } = await statfs(path, { bigint: true });
  return {
    sizeBytes: Number(bsize * blocks),
    freeBytes: Number(bsize * bavail),
    inodes: Number(files),
    freeInodes: Number(ffree),
  };
}
