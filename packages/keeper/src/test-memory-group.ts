import { existsSync, mkdirSync, rmdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";

/** A control group with little memory and no swap, for whatever joins it. */
export interface MemoryGroup extends AsyncDisposable {
  readonly dir: string;
  /** Put before a command, it makes that command join first. */
  readonly launcher: readonly string[];
}

const V1 = "/sys/fs/cgroup/memory";
const V2 = "/sys/fs/cgroup";

/** Whether a group can be made here: by root, with the memory controller. */
export const canMakeGroups =
  process.getuid?.() === 0 && (existsSync(V1) || existsSync(join(V2, "cgroup.controllers")));

export function makeMemoryGroup(limitBytes: number): MemoryGroup {
  const isV1 = existsSync(V1);
  const dir = join(isV1 ? V1 : V2, `holdfast-test-${process.pid}`);
  if (!isV1) writeFileSync(join(V2, "cgroup.subtree_control"), "+memory");
  mkdirSync(dir);
  const limits = isV1
    ? { "memory.limit_in_bytes": limitBytes, "memory.memsw.limit_in_bytes": limitBytes }
    : { "memory.max": limitBytes, "memory.swap.max": 0 };
  for (const [file, value] of Object.entries(limits)) {
    // A kernel without accounting of swap has no such file, and mostly no swap either.
    if (existsSync(join(dir, file))) writeFileSync(join(dir, file), String(value));
  }
  return {
    dir,
    launcher: ["sh", "-c", 'echo $$ >"$0/cgroup.procs" && exec "$@"', dir],
    [Symbol.asyncDispose]: () => remove(dir),
  };
}

/** A process that was just waited for may still be counted for a moment. */
async function remove(dir: string): Promise<void> {
  for (;;) {
    try {
      rmdirSync(dir);
      return;
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== "EBUSY") throw error;
      await Bun.sleep(5);
    }
  }
}
