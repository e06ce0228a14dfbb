import type { Usage } from "@holdfast/protocol";
import { readBody } from "./read-body.ts";
import type { Scope } from "./scope.ts";
import { ServerSentEvents } from "./server-sent-events.ts";

/** Until when to wait. */
export interface UsageOptions {
  signal?: AbortSignal | undefined;
}

/** How often to look. */
export interface FollowUsageOptions extends UsageOptions {
  /** The time between two samples. Default: 2 s. */
  everyMs?: number | undefined;
}

export async function usage({ client, path }: Scope, { signal }: UsageOptions): Promise<Usage> {
  return (await client.json<Usage>({ method: "GET", path: `${path}/usage`, again: "safe", signal })).body;
}

/** Samples until the instance ends, the caller leaves or the connection breaks for good. */
export async function* followUsage(scope: Scope, options: FollowUsageOptions): AsyncGenerator<Usage> {
  const { client } = scope;
  const { everyMs, signal } = options;
  const query = { follow: true, everyMs };
  for (;;) {
    const path = `${scope.path}/usage`;
    const response = await client.open({ method: "GET", path, query, again: "safe", signal });
    const decoder = new ServerSentEvents();
    for await (const chunk of readBody({ response, signal, url: client.url, ended: {} })) {
      for (const { data } of decoder.push(chunk)) yield JSON.parse(data) as Usage;
    }
  }
}
