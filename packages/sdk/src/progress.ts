import type { SandboxEvent, Sandbox as SandboxInfo } from "@holdfast/protocol";
import { HoldfastError } from "@holdfast/protocol/errors";
import { sleep } from "./backoff.ts";
import type { Scope } from "./scope.ts";
import { events, followEvents } from "./timeline.ts";

type Place = Pick<Scope, "client" | "path">;

// How soon a sandbox that is about to be made is found: its row is written before anything that takes long.
const FIND_EVERY_MS = 50;

/** Does something, and tells what happens meanwhile. */
export async function whileTelling<T>(
  onProgress: (event: SandboxEvent) => void,
  follow: (over: AbortSignal) => AsyncIterable<SandboxEvent>,
  work: () => Promise<T>,
): Promise<T> {
  const over = new AbortController();
  const telling = (async () => {
    for await (const event of follow(over.signal)) onProgress(event);
  })();
  // What is told is worth nothing without what it is about, and no reason to give that up.
  telling.catch(() => undefined);
  try {
    return await work();
  } finally {
    over.abort();
  }
}

/** The number of the last entry in its timeline. */
export async function latest(place: Place, signal: AbortSignal | undefined): Promise<number> {
  // Of one that was deleted there is a timeline, too: only a sandbox that is there has one to go on with.
  await place.client.json({ method: "GET", path: place.path, again: "safe", signal });
  return (await events(place, { signal })).at(-1)?.seq ?? 0;
}

/** The timeline of the sandbox that has this name, or will have it in a moment. */
export async function* followNamed(
  { client, path }: Place,
  since: number | undefined,
  signal: AbortSignal,
): AsyncGenerator<SandboxEvent> {
  for (;;) {
    const found = await client
      .json<SandboxInfo>({ method: "GET", path, again: "safe", signal })
      .catch(unlessMissing);
    // By its id: the name may get another one.
    const byId = found && path.replace(/[^/]+$/, encodeURIComponent(found.body.id));
    if (byId !== undefined) return yield* followEvents({ client, path: byId }, { since, signal });
    await sleep(FIND_EVERY_MS, signal);
  }
}

export function unlessMissing(error: unknown): undefined {
  if (error instanceof HoldfastError && (error.code === "not_found" || error.code === "gone")) return;
  throw error;
}
