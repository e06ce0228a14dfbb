import { setTimeout as sleep } from "node:timers/promises";
import type { InstanceRef, Observation } from "@holdfast/core";
import { type Identity, instanceDir } from "../local/identity.ts";
import { keeperSocket } from "../local/keeper-socket.ts";
import type { Layout } from "../local/layout.ts";
import { readBootId } from "../local/place.ts";
import type { DockerApi } from "./api.ts";
import { ensureBridge, isBridged } from "./bridge.ts";
import { causeOfEnd } from "./cause.ts";
import type { Container } from "./engine-types.ts";
import type { Silence } from "./events.ts";
import { type Holder, holderOf, mayBe } from "./holder.ts";
import { findLayer } from "./layer.ts";
import { containerName } from "./names.ts";
import { identityOf } from "./run-dir.ts";

type Absent = Extract<Observation, { state: "absent" }>;

/** How long a container that is being removed is given to be gone before we say what is there. */
const SETTLE_MS = 500;

interface Look {
  readonly api: DockerApi;
  readonly layout: Layout;
  readonly signal: AbortSignal;
  /** When the daemon could not be heard for the last time. */
  readonly silence?: Silence | undefined;
  /** Whether it says of a container that ran out of memory that it did. */
  readonly tellsOom?: boolean;
}

/** What is true of an instance now, by the daemon's own account. */
export async function observeInstance(ref: InstanceRef, look: Look): Promise<Observation> {
  const deadline = performance.now() + SETTLE_MS;
  for (;;) {
    const holder = await holderOf(ref, look);
    const isLeaving = holder.kind !== "nobody" && holder.container.State.Status === "removing";
    if (!isLeaving || performance.now() > deadline) return seen(holder, ref, look);
    await sleep(20, undefined, { signal: look.signal });
  }
}

async function seen(holder: Holder, ref: InstanceRef, look: Look): Promise<Observation> {
  if (!mayBe(holder, ref)) return anothers(ref);
  if (holder.kind === "nobody") return notThere(ref, look);
  const identity = await identityOf(look.layout, ref);
  const { container } = holder;
  if (isOver(container)) {
    const { silence, tellsOom = true } = look;
    const cause = await causeOfEnd(container, { ...look, silence, tellsOom });
    return { state: "absent", proof: "exited", detail: describeEnd(container), ...(cause && { cause }) };
  }
  return {
    state: "running",
    keeper: { kind: "unix", path: await socketOf(container, ref, look) },
    limits: identity?.limits ?? {
      state: "none",
      detail: "unknown: what the instance's directory said of it is gone",
    },
    ...(identity?.disk !== undefined && { disk: identity.disk }),
    ...(container.State.Status === "paused" && { isPaused: true }),
    detail: describe(container),
  };
}

async function socketOf(
  container: Container,
  ref: InstanceRef,
  where: { api: DockerApi; layout: Layout },
): Promise<string> {
  if (isBridged(container)) return ensureBridge(where, container.Id);
  return keeperSocket(instanceDir(where.layout, ref));
}

/** Two containers cannot have one name: while another has it, this instance does not exist. */
export function anothers(ref: InstanceRef): Absent {
  const detail = `${containerName(ref)} is the name of another container, which was left alone`;
  return { state: "absent", proof: "exited", detail };
}

/** The daemon knows none of that name. */
export async function notThere(ref: InstanceRef, look: Look): Promise<Absent> {
  const layer = await findLayer(ref, look);
  if (layer === undefined) return missing(ref, await identityOf(look.layout, ref));
  // It is the sandbox's one container, and this is the daemon that has it: an earlier stop came as far as this.
  const end = isOver(layer) ? describeEnd(layer) : `container ${shortId(layer.Id)} does not run`;
  return { state: "absent", proof: "exited", detail: `${end}, and is kept` };
}

/** It may be another daemon than the one that was asked to make it. */
function missing(ref: InstanceRef, identity: Identity | undefined): Absent {
  const detail = `Docker has no container ${containerName(ref)}`;
  const bootId = identity?.bootId ?? null;
  if (bootId === null || bootId === readBootId())
    return { state: "absent", proof: "not_found", detail, cause: "removed_outside" };
  const reset = `this machine has started anew since its launch (boot id ${bootId} then)`;
  return { state: "absent", proof: "host_reset", detail: `${detail}; ${reset}` };
}

/** "removing" is not over: it says what somebody wants, not what is. */
export function isOver({ State }: Container): boolean {
  return State.Status === "exited" || State.Status === "dead";
}

export function describeEnd({ Id, State }: Container): string {
  const oom = State.OOMKilled ? ", for lack of memory" : "";
  const error = State.Error === "" ? "" : ` (${State.Error})`;
  return `container ${shortId(Id)} ended with exit code ${State.ExitCode}${oom}${error} at ${State.FinishedAt}`;
}

function describe({ Id, State }: Container): string {
  const status = State.Status;
  if (status === "created") return `container ${shortId(Id)} is made and not started yet`;
  return `container ${shortId(Id)} is ${status}; its keeper is pid ${State.Pid} to the daemon, since ${State.StartedAt}`;
}

export function shortId(id: string): string {
  return id.slice(0, 12);
}
