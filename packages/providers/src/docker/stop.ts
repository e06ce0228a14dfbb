import { setTimeout as sleep } from "node:timers/promises";
import type { InstanceRef, Observation } from "@holdfast/core";
import type { Layout } from "../local/layout.ts";
import type { DockerApi } from "./api.ts";
import { closeBridge } from "./bridge.ts";
import type { Container } from "./engine-types.ts";
import { refusalOf } from "./errors.ts";
import { holderOf, inspectContainer, mayBe } from "./holder.ts";
import { findLayer, keepLayer } from "./layer.ts";
import { anothers, describeEnd, isOver, notThere, shortId } from "./observe.ts";
import { setPaused } from "./pause.ts";
import { GONE_TIMEOUT_MS, LOOK_PAUSE_MS, notGone, removeContainer } from "./remove-container.ts";
import { removeRunDir } from "./run-dir.ts";

export interface StopOptions {
  readonly api: DockerApi;
  readonly layout: Layout;
  readonly mode: "graceful" | "force";
  readonly signal: AbortSignal;
}

/** What the keeper has for ending its work and writing its records, which takes it 5 s at worst; then Docker kills it. */
const GRACE_SECONDS = 6;

/**
 * Ends an instance, proves it, and only then removes what belonged to it alone. Its container, with all that is in its
 * file system, stays as a part of the disk. May be called twice.
 */
export async function stopInstance(ref: InstanceRef, options: StopOptions): Promise<Observation> {
  const { api, layout, signal } = options;
  const holder = await holderOf(ref, options);
  if (!mayBe(holder, ref)) return anothers(ref);
  if (holder.kind === "nobody") {
    const seen = await notThere(ref, options);
    await removeRunDir(layout, ref);
    return seen;
  }
  // By its id from here on: a name could be another's by now.
  const { container } = holder;
  const ended = await end(container, options);
  await closeBridge(options, container.Id);
  const isItsOwn = holder.kind === "known" || (await isLayer(ref, container, options));
  const left = isItsOwn ? await keepLayer(ref, container, options) : "removed";
  if (!isItsOwn) await removeContainer(api, container.Id, signal);
  await removeRunDir(layout, ref);
  return { state: "absent", proof: "exited", detail: `${ended}, and is ${left}` };
}

/** An earlier stop has come to its end, and left it its name. */
async function isLayer(ref: InstanceRef, container: Container, options: StopOptions): Promise<boolean> {
  return isOver(container) && (await findLayer(ref, options))?.Id === container.Id;
}

/** Returns what was seen of its end. */
async function end(container: Container, { api, mode, signal }: StopOptions): Promise<string> {
  const { Id, State } = container;
  if (State.Status === "created") return `container ${shortId(Id)} was never started`;
  if (isOver(container)) return describeEnd(container);
  try {
    // What is frozen cannot end.
    if (State.Status === "paused") await setPaused(api, Id, { to: "unpause", signal });
    await (mode === "graceful" ? askToEnd(api, Id, signal) : kill(api, Id, signal));
  } catch (error) {
    // It may have ended in the meantime, for which Docker and Podman have several answers: a look tells.
    const now = refusalOf(error) === undefined ? container : await inspectContainer(api, Id, signal);
    if (now !== undefined && !isOver(now)) throw error;
  }
  return untilOver(api, Id, signal);
}

/** The daemon kills what has not ended after the grace. */
async function askToEnd(api: DockerApi, id: string, signal: AbortSignal): Promise<void> {
  const timeoutMs = (GRACE_SECONDS + 10) * 1000;
  const query = { t: String(GRACE_SECONDS) };
  await api.request({ method: "POST", path: `/containers/${id}/stop`, query, signal, timeoutMs });
}

async function kill(api: DockerApi, id: string, signal: AbortSignal): Promise<void> {
  await api.request({ method: "POST", path: `/containers/${id}/kill`, signal });
}

async function untilOver(api: DockerApi, id: string, signal: AbortSignal): Promise<string> {
  const deadline = performance.now() + GONE_TIMEOUT_MS;
  for (;;) {
    const container = await inspectContainer(api, id, signal);
    if (container === undefined) return `container ${shortId(id)} was removed by somebody else`;
    if (isOver(container)) return describeEnd(container);
    if (performance.now() > deadline) throw notGone(id, `killed but is still ${container.State.Status}`);
    await sleep(LOOK_PAUSE_MS, undefined, { signal });
  }
}
