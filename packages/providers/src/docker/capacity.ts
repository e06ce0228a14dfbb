import { statfs } from "node:fs/promises";
import type { Capacity } from "@holdfast/core";
import { HoldfastError } from "@holdfast/protocol";
import type { Info } from "./engine-types.ts";

/** Measures what the daemon has for sandboxes: its memory, and the file system on which it keeps layers and volumes. */
export async function measureCapacity(info: Info): Promise<Capacity> {
  try {
    const { bsize, blocks, bavail, files, ffree } = await statfs(info.DockerRootDir, { bigint: true });
    return {
      slots: null,
      memoryBytes: info.MemTotal,
      disk: {
        sizeBytes: Number(bsize * blocks),
        freeBytes: Number(bsize * bavail),
        inodes: Number(files),
        freeInodes: Number(ffree),
      },
    };
  } catch (cause) {
    const why = cause instanceof Error ? cause.message : String(cause);
    throw new HoldfastError(
      "capacity_unknown",
      `cannot measure Docker's disk ${info.DockerRootDir}: ${why}`,
      {
        hint: "Nothing was changed. The daemon must run on this machine, and this user must be able to reach that directory.",
        cause,
        started: "no",
      },
    );
  }
}
