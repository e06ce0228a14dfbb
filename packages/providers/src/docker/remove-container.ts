import { setTimeout as sleep } from "node:timers/promises";
import { HoldfastError } from "@holdfast/protocol";
import type { DockerApi } from "./api.ts";
import { refusalOf } from "./errors.ts";
import { inspectContainer } from "./holder.ts";

/** A killed container is gone within milliseconds, unless it hangs in the kernel (a dead network disk): then it is said. */
export const GONE_TIMEOUT_MS = 10_000;
export const LOOK_PAUSE_MS = 20;

/** With the volumes that have no name, which an image may ask for; never with those of the disk. Returns when it is gone. */
export async function removeContainer(api: DockerApi, id: string, signal: AbortSignal): Promise<void> {
  const deadline = performance.now() + GONE_TIMEOUT_MS;
  for (;;) {
    await askToRemove(api, id, signal);
    if ((await inspectContainer(api, id, signal)) === undefined) return;
    if (performance.now() > deadline) throw notGone(id, "removed but is still listed");
    await sleep(LOOK_PAUSE_MS, undefined, { signal });
  }
}

async function askToRemove(api: DockerApi, id: string, signal: AbortSignal): Promise<void> {
  try {
    const query = { v: "1", force: "1" };
    await api.request({ method: "DELETE", path: `/containers/${id}`, query, expect: [404], signal });
  } catch (error) {
    // Somebody else is removing it already.
    if (refusalOf(error) !== 409) throw error;
  }
}

export function notGone(id: string, what: string): HoldfastError {
  return new HoldfastError("unavailable", `the container ${id.slice(0, 12)} was ${what}`, {
    hint: "Its processes probably wait in the kernel, for a disk or a network file system. It will be tried again.",
    details: { container: id },
  });
}
