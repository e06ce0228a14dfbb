import type { Change } from "@holdfast/protocol";
import { Patience } from "./backoff.ts";
import type { Client } from "./client.ts";
import { failureOfConnection } from "./failures.ts";
import { type CallOptions, clientOf } from "./lifecycle.ts";
import { type BrokenOff, readBody } from "./read-body.ts";
import { ServerSentEvents } from "./server-sent-events.ts";

/** Which server, and whom to tell of its absence. */
export interface ChangeOptions extends CallOptions {
  /** Told when the connection is lost, and when it is there again. */
  onConnection?: ((change: "lost" | "back") => void) | undefined;
}

/**
 * Every sandbox that changes, as it then is. Begins with `resync`, and says so again whenever something may have been
 * missed: list the sandboxes then. A connection that breaks is made again by itself.
 *
 * @example
 * ```ts
 * for await (const change of followChanges()) {
 *   if (change.type === "resync") console.log((await Sandbox.list()).length);
 *   if (change.type === "changed") console.log(change.sandbox.name, change.sandbox.state);
 *   break;   // or go on for as long as you like
 * }
 * ```
 */
export async function* followChanges(options: ChangeOptions = {}): AsyncGenerator<Change> {
  const { signal, onConnection } = options;
  const client = await clientOf(options);
  const patience = new Patience(client.patienceMs);
  const place: Place = { since: undefined };
  for (let connection = 1; ; connection++) {
    const ended: BrokenOff = {};
    const back = connection === 1 ? undefined : () => onConnection?.("back");
    yield* oneConnection({ client, place, patience, ended, signal, back });
    onConnection?.("lost");
    await patience.pause(ended.error ?? closed(client), signal);
  }
}

interface Place {
  since: string | undefined;
}

async function* oneConnection(of: {
  client: Client;
  place: Place;
  patience: Patience;
  ended: BrokenOff;
  signal: AbortSignal | undefined;
  back: (() => void) | undefined;
}): AsyncGenerator<Change> {
  const { client, place, patience, ended, signal } = of;
  const query = { since: place.since };
  const headers = { Accept: "text/event-stream" };
  const response = await client.open({
    ...{ method: "GET", path: "/v1/events", query, headers, again: "safe" },
    signal,
  });
  of.back?.();
  const decoder = new ServerSentEvents();
  for await (const chunk of readBody({ response, signal, url: client.url, ended })) {
    patience.reset();
    for (const { id, data } of decoder.push(chunk)) {
      if (id !== "") place.since = id;
      yield JSON.parse(data) as Change;
    }
  }
}

function closed(client: Client): Error {
  return failureOfConnection(new Error("the server closed the connection"), client.url);
}
