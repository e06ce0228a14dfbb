import type { WatchEvent } from "@holdfast/protocol";
import type { HoldfastError } from "@holdfast/protocol/errors";
import { Patience } from "./backoff.ts";
import { failureOfConnection } from "./failures.ts";
import { type BrokenOff, readBody } from "./read-body.ts";
import type { Scope } from "./scope.ts";
import { ServerSentEvents } from "./server-sent-events.ts";

/** How deep to watch, and from when on. */
export interface WatchOptions {
  /** Also what is in its directories, and in those that come later. Default: true. */
  recursive?: boolean | undefined;
  /** A cursor of an earlier event: go on after it. */
  since?: string | undefined;
  signal?: AbortSignal | undefined;
}

/** Something that happened to a file; `cursor` is where another watch goes on after it. */
export type FileEvent = WatchEvent & { cursor: string };

/**
 * What happens below a path. A connection that breaks, and a server that restarts, go unnoticed; whatever may have been
 * missed is said with `resync`. Ends when what is watched is gone, after having said so.
 */
export async function* watchFiles(
  scope: Scope,
  path: string,
  options: WatchOptions,
): AsyncGenerator<FileEvent> {
  const { client } = scope;
  const patience = new Patience(client.patienceMs);
  let since = options.since;
  let isReady = false;
  for (;;) {
    const ended: BrokenOff = {};
    for await (const event of oneConnection({
      scope,
      path,
      options: { ...options, since },
      patience,
      ended,
    })) {
      since = event.cursor;
      // Told once: after a reconnect all goes on, or `resync` says that it does not.
      if (event.type !== "ready" || !isReady) yield event;
      isReady = true;
      if (event.type === "resync" && event.reason === "root_gone") return;
    }
    await patience.pause(ended.error ?? endedEarly(client.url), options.signal);
  }
}

interface Connection {
  scope: Scope;
  path: string;
  options: WatchOptions;
  patience: Patience;
  ended: BrokenOff;
}

async function* oneConnection(connection: Connection): AsyncGenerator<FileEvent> {
  const { scope, path, options, patience, ended } = connection;
  const { client } = scope;
  const { recursive, since, signal } = options;
  const call = { method: "GET", path: `${scope.path}/watch`, again: "safe", signal } as const;
  const response = await client.open({ ...call, query: { path, recursive, since } });
  const decoder = new ServerSentEvents();
  for await (const chunk of readBody({ response, signal, url: client.url, ended })) {
    patience.reset();
    for (const { event, data, id } of decoder.push(chunk))
      yield { type: event, ...JSON.parse(data), cursor: id } as FileEvent;
  }
}

function endedEarly(url: string): HoldfastError {
  return failureOfConnection(new Error("the watch ended before it was asked to"), url);
}
