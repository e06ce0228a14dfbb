import type { SandboxEvent, Sandbox as SandboxInfo } from "@holdfast/protocol";
import { HoldfastError } from "@holdfast/protocol/errors";
import { sleep } from "./backoff.ts";
import type { Scope } from "./scope.ts";
import { events, followEvents } from "./timeline.ts";

type Place = Pick<Scope, "client" | "path">;

// How soon a sandbox that is about to be made is found: its row is written before anything that takes long.
const FIND_EVERY_MS = 50;

interface Telling<T> {
  onProgress: (event: SandboxEvent) => void;
  follow: (over: AbortSignal) => AsyncIterable<SandboxEvent>;
  /** Where to look for what was too quick to be followed, once it is known which sandbox it is. */
  placeOf: (result: T) => Place;
  /** What had happened before. */
  since?: number | undefined;
}

/** Does something, and tells what happens meanwhile. */
export async function whileTelling<T>(telling: Telling<T>, work: () => Promise<T>): Promise<T> {
  const { onProgress, follow, placeOf, since = 0 } = telling;
  const over = new AbortController();
  let told = since;
  const tell = (event: SandboxEvent) => {
    told = Math.max(told, event.seq);
    onProgress(event);
  };
  const following = (async () => {
    for await (const event of follow(over.signal)) if (!over.signal.aborted) tell(event);
  })();
  // What is told is worth nothing without what it is about, and no reason to give that up.
  following.catch(() => undefined);
  try {
    const result = await work();
    over.abort();
    const missed = await events(placeOf(result), { since: told }).catch(() => []);
    for (const event of missed) tell(event);
    return result;
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
