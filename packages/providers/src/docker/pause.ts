import type { InstanceRef, Observation } from "@holdfast/core";
import type { Layout } from "../local/layout.ts";
import type { DockerApi } from "./api.ts";
import { type Info, isPodman } from "./engine-types.ts";
import { refusalOf } from "./errors.ts";
import { holderOf, inspectContainer, mayBe } from "./holder.ts";
import { observeInstance } from "./observe.ts";

interface Pausing {
  readonly api: DockerApi;
  readonly layout: Layout;
  readonly signal: AbortSignal;
}

/** Whether this daemon can, and by what or why not. */
export function canPause(info: Info): { possible: boolean; detail: string } {
  const version = info.CgroupVersion ?? "1";
  const engine = isPodman(info) ? "Podman" : "Docker";
  const isRootless = info.Rootless === true || (info.SecurityOptions ?? []).includes("name=rootless");
  if (isRootless && version === "1")
    return { possible: false, detail: `a rootless ${engine} cannot freeze with control groups v1` };
  return { possible: true, detail: `by the freezer of control groups v${version}` };
}

/** All processes of the container at once, by the kernel: none of them notices. */
export function pauseInstance(ref: InstanceRef, pausing: Pausing): Promise<Observation> {
  return turn(ref, "pause", pausing);
}

export function resumeInstance(ref: InstanceRef, pausing: Pausing): Promise<Observation> {
  return turn(ref, "unpause", pausing);
}

async function turn(ref: InstanceRef, to: "pause" | "unpause", pausing: Pausing): Promise<Observation> {
  const holder = await holderOf(ref, pausing);
  const wanted = to === "pause" ? "running" : "paused";
  if (holder.kind === "known" && mayBe(holder, ref) && holder.container.State.Status === wanted)
    await setPaused(pausing.api, holder.container.Id, { to, signal: pausing.signal });
  return observeInstance(ref, pausing);
}

/** With control groups v1 a process that is just being made escapes the freezer; on a busy machine, more than once. */
const MOST_TRIES = 5;

/** Somebody else may have done it meanwhile, or it has ended: a look tells. */
export async function setPaused(
  api: DockerApi,
  id: string,
  { to, signal }: { to: "pause" | "unpause"; signal: AbortSignal },
): Promise<void> {
  for (let tries = 1; ; tries++) {
    try {
      await api.request({ method: "POST", path: `/containers/${id}/${to}`, signal });
      return;
    } catch (error) {
      if (refusalOf(error) === undefined) throw error;
      const status = (await inspectContainer(api, id, signal))?.State.Status;
      const unchanged = to === "pause" ? "running" : "paused";
      if (status !== unchanged) return;
      if (tries === MOST_TRIES) throw error;
    }
  }
}
