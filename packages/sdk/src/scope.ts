import type { Client } from "./client.ts";

/** One sandbox on one server: what every operation on it needs. */
export interface Scope {
  readonly client: Client;
  /** `/v1/sandboxes/ID` */
  readonly path: string;
  /** Aborts when the handle is released. */
  lifetime(): AbortSignal;
}

export function conditionHeaders(options: { ifGeneration?: number | undefined }): Record<string, string> {
  return options.ifGeneration === undefined ? {} : { "If-Generation": String(options.ifGeneration) };
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
