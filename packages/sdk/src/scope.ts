import type { Client } from "./client.ts";

/** One sandbox on one server: what every operation on it needs. */
export interface Scope {
  readonly client: Client;
  /** `/v1/sandboxes/ID` */
  readonly path: string;
  /** Aborts when the handle is released. */
  lifetime(): AbortSignal;
}

/** Which instance a call is for, where any other would be the wrong one. */
export interface Conditions {
  /** Refuse with `state_lost` if the sandbox is no longer this generation. */
  ifGeneration?: number | undefined;
  /** With it: what will do instead, a new instance on the old disk, or also on what is left of it. */
  ifContinuity?: "same-filesystem" | "restored" | undefined;
}

export function conditionHeaders({ ifGeneration, ifContinuity }: Conditions): Record<string, string> {
  return {
    ...(ifGeneration !== undefined && { "If-Generation": String(ifGeneration) }),
    ...(ifContinuity !== undefined && { "If-Continuity": ifContinuity }),
  };
}

/** Until when to wait for an answer. */
export interface Waiting {
  signal?: AbortSignal | undefined;
}

/**
 * The caller's signal and the handle's lifetime in one: a released handle leaves no reading behind. Always a new
 * signal, because Node warns of a leak when many calls listen to the same one.
 */
export function whileHeld(scope: Scope, signal: AbortSignal | undefined): AbortSignal {
  return AbortSignal.any(signal === undefined ? [scope.lifetime()] : [signal, scope.lifetime()]);
}

/** Text travels as it is, bytes as base64. */
export function toStdin(stdin: string | Uint8Array): string | { base64: string } {
  if (typeof stdin === "string") return stdin;
  let binary = "";
  // In pieces: a call takes only so many arguments.
  for (let at = 0; at < stdin.length; at += 8192)
    binary += String.fromCharCode(...stdin.subarray(at, at + 8192));
  return { base64: btoa(binary) };
}
