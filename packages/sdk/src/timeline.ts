import type { SandboxEvent } from "@holdfast/protocol";
import { Patience } from "./backoff.ts";
import type { Client } from "./client.ts";
import { failureOfConnection } from "./failures.ts";
import { type BrokenOff, readBody } from "./read-body.ts";
import type { Scope } from "./scope.ts";
import { ServerSentEvents } from "./server-sent-events.ts";

/** Which part of a timeline. */
export interface EventOptions {
  /** A `seq`: only what came after it. */
  since?: number | undefined;
  signal?: AbortSignal | undefined;
}

type Place = Pick<Scope, "client" | "path">;

export async function events({ client, path }: Place, options: EventOptions): Promise<SandboxEvent[]> {
  const { since, signal } = options;
  const call = { method: "GET", path: `${path}/events`, query: { since }, again: "safe", signal } as const;
  return (await client.json<{ events: SandboxEvent[] }>(call)).body.events;
}

/**
 * The timeline so far and what is added to it later, until the sandbox is deleted. A connection that breaks, and a
 * server that restarts, go unnoticed: it continues after the last entry.
 */
export async function* followEvents(place: Place, options: EventOptions): AsyncGenerator<SandboxEvent> {
  const { client } = place;
  const patience = new Patience(client.patienceMs);
  let since = options.since ?? 0;
  for (;;) {
    const ended: BrokenOff = {};
    for await (const event of oneConnection({ place, since, patience, ended, signal: options.signal })) {
      if (event === "end") return;
      since = event.seq;
      yield event;
    }
    await patience.pause(ended.error ?? closedEarly(client), options.signal);
  }
}

interface Connection {
  place: Place;
  since: number;
  patience: Patience;
  ended: BrokenOff;
  signal: AbortSignal | undefined;
}

async function* oneConnection(connection: Connection): AsyncGenerator<SandboxEvent | "end"> {
  const { place, since, patience, ended, signal } = connection;
  const { client } = place;
  const query = { since, follow: true };
  const headers = { Accept: "text/event-stream" };
  const path = `${place.path}/events`;
  const response = await client.open({ method: "GET", path, query, headers, again: "safe", signal });
  const decoder = new ServerSentEvents();
  for await (const chunk of readBody({ response, signal, url: client.url, ended })) {
    patience.reset();
    for (const { event, data } of decoder.push(chunk))
      yield event === "end" ? "end" : (JSON.parse(data) as SandboxEvent);
  }
}

function closedEarly(client: Client): Error {
  return failureOfConnection(new Error("the timeline ended before its sandbox did"), client.url);
}
