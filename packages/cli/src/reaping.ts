import type { SandboxInfo } from "holdfast";
import { ahead, span } from "./units.ts";

export const becomes = { stop: "stopped", remove: "removed", keep: "kept" } as const;

/** When it will be ended, in a few words: `in 12m`, `in 12m: removed`, `held: turn`, `never`; `-` if it does not run. */
export function reaping(info: SandboxInfo, now?: number): string {
  if (info.state !== "running") return "-";
  if (info.reapsAt !== undefined) {
    const then = info.onIdle === "remove" ? ": removed" : "";
    return `in ${ahead(info.reapsAt, now)}${then}`;
  }
  if (info.openTurns > 0) return "held: turn";
  return info.onIdle === "keep" ? "never" : "-";
}

/** The policy in one line. */
export function policyText(info: SandboxInfo): string {
  const idle =
    info.onIdle === "keep"
      ? "kept however long it is idle"
      : `${becomes[info.onIdle]} when idle for ${span(info.lifetimeSeconds * 1000)}`;
  return [
    info.persistent ? "persistent" : "until its last turn ends",
    `${info.filesystem} files`,
    idle,
    ...(info.maxLifetimeSeconds === null ? [] : [`at most ${span(info.maxLifetimeSeconds * 1000)}`]),
  ].join(", ");
}
