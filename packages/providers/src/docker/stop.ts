import { setTimeout as sleep } from "node:timers/promises";
import type { InstanceRef, Observation } from "@holdfast/core";
import { HoldfastError } from "@holdfast/protocol";
import type { Layout } from "../local/layout.ts";
import type { DockerApi } from "./api.ts";
import type { Container } from "./engine-types.ts";
import { refusalOf } from "./errors.ts";
import { holderOf, inspectContainer, mayBe } from "./holder.ts";
import { anothers, describeEnd, isOver, missing, shortId } from "./observe.ts";
import { identityOf, removeRunDir } from "./run-dir.ts";

export interface StopOptions {
  readonly api: DockerApi;
  readonly layout: Layout;
  readonly mode: "graceful" | "force";
  readonly signal: AbortSignal;
}

/** What the keeper has for ending its work and writing its records, which takes it 5 s at worst; then Docker kills it. */
const GRACE_SECONDS = 6;
/** A killed container is gone within milliseconds, unless it hangs in the kernel (a dead network disk): then it is said. */
const GONE_TIMEOUT_MS = 10_000;
const LOOK_PAUSE_MS = 20;

/** Ends an instance, proves it, and only then removes what belonged to it. May be called twice. */
export async function stopInstance(ref: InstanceRef, options: StopOptions): Promise<Observation> {
  const { api, layout, signal } = options;
  const holder = await holderOf(api, ref, signal);
  if (!mayBe(holder, ref)) return anothers(ref);
  const identity = await identityOf(layout, ref);
  if (holder.kind === "nobody") {
    await removeRunDir(layout, ref);
    return missing(ref, identity);
  }
  // By its id from here on: a name could be another's by now.
  const ended = await end(holder.container, options);
  await remove(api, holder.container.Id, signal);
  await removeRunDir(layout, ref);
  return { state: "absent", proof: "exited", detail: `${ended}, and is removed` };
}

/** Returns what was seen of its end. */
async function end(container: Container, { api, mode, signal }: StopOptions): Promise<string> {
  const { Id, State } = container;
  if (State.Status === "created") return `container ${shortId(Id)} was never started`;
  if (isOver(container)) return describeEnd(container);
  try {
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

/** With the volumes that have no name, which an image may ask for; never with those of the disk. */
async function remove(api: DockerApi, id: string, signal: AbortSignal): Promise<void> {
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

function notGone(id: string, what: string): HoldfastError {
  return new HoldfastError("unavailable", `the container ${shortId(id)} was ${what}`, {
    hint: "Its processes probably wait in the kernel, for a disk or a network file system. It will be tried again.",
    details: { container: id },
  });
}
