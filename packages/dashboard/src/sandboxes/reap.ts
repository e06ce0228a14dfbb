import type { SandboxInfo } from "holdfast";
import { countdown } from "../format.ts";

export interface Reap {
  /** What will become of it, and when. */
  readonly text: string;
  /** Why, or what prevents it. */
  readonly because: string;
  readonly isSoon: boolean;
}

const SOON_MS = 60_000;

/** When and why a sandbox will be reaped, as far as the list knows; `why` has the whole of it. */
export function reapOf(sandbox: SandboxInfo, now: number): Reap {
  const calm = { isSoon: false };
  if (sandbox.heldAwakeBy.length > 0) return { ...calm, text: "held awake", because: holds(sandbox) };
  switch (sandbox.state) {
    case "running":
    case "paused":
      return running(sandbox, now);
    case "stopped":
      return { ...calm, text: "the next use starts it", because: lastDeath(sandbox) };
    case "failed":
      return { ...calm, text: "did not start", because: sandbox.failure ?? "" };
    case "creating":
      return { ...calm, text: "is being started", because: "" };
    case "stopping":
      return { ...calm, text: "is being stopped", because: "" };
    case "deleting":
      return { ...calm, text: "is being deleted", because: "" };
    default:
      return sandbox.state satisfies never;
  }
}

function running(sandbox: SandboxInfo, now: number): Reap {
  const { reapsAt, onIdle, filesystem } = sandbox;
  if (reapsAt === undefined) return { text: "kept", because: "idleness does not end it", isSoon: false };
  const leftMs = leftOf(reapsAt, sandbox, now);
  const verb = onIdle === "remove" || filesystem === "ephemeral" ? "removed" : "stops";
  // Its time has come: the server asks its keeper whether something runs, and then acts or moves it on.
  if (leftMs <= 0) return { text: `${verb} unless something runs`, because: "is being judged", isSoon: true };
  const because = `when it has been idle for ${countdown(sandbox.lifetimeSeconds * 1000)}`;
  return { text: `${verb} in ${countdown(leftMs)}`, because, isSoon: leftMs < SOON_MS };
}

/** Never more than a whole lifetime, also if the page's clock is a moment behind the server's. */
export function leftOf(reapsAt: string, { lifetimeSeconds }: SandboxInfo, now: number): number {
  return Math.min(Date.parse(reapsAt) - now, lifetimeSeconds * 1000);
}

/** A row has room for what holds it, not for which ones. */
function holds({ heldAwakeBy }: SandboxInfo): string {
  const kinds = heldAwakeBy.map((hold) => hold.replace(/^turn \S+/, "a turn"));
  return [...new Set(kinds)].join("; ");
}

/** Its cause; the evidence is in the timeline. */
function lastDeath({ lastDeath: death }: SandboxInfo): string {
  return death?.cause.replaceAll("_", " ") ?? "";
}
