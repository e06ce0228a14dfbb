import type {
  CreateSandbox,
  SandboxEvent,
  Sandbox as SandboxInfo,
  SandboxState,
  UpdateSandbox,
  Why,
} from "@holdfast/protocol";
import { HoldfastError } from "@holdfast/protocol/errors";
import { Client, type ConnectOptions } from "./client.ts";
import { followNamed, latest, unlessMissing, whileTelling } from "./progress.ts";
import { type Conditions, conditionHeaders, type Scope, type Waiting } from "./scope.ts";
import { type EventOptions, events, followEvents } from "./timeline.ts";

/** Which server to call, and until when. */
export interface CallOptions extends ConnectOptions {
  /** Used instead of finding the server anew: one client for many calls. */
  client?: Client | undefined;
  signal?: AbortSignal | undefined;
}

/** What to do where there is no room. */
export interface QueueOptions {
  /** Wait so long for room where there is none now. Default: 0, be told at once. */
  queueSeconds?: number | undefined;
}

/** Whom to tell while it takes long. */
export interface ProgressOptions {
  /**
   * Told what happens while it waits: an image that is fetched, or a snapshot that is copied, takes minutes.
   *
   * @example
   * ```ts
   * await Sandbox.create({}, { onProgress: ({ type, detail }) => console.log(type, detail) });
   * ```
   */
  onProgress?: ((event: SandboxEvent) => void) | undefined;
}

/** How to create. */
export interface CreateOptions extends CallOptions, QueueOptions, ProgressOptions {
  /** `false`: resolve at once, with state `creating`. */
  wait?: boolean | undefined;
  /** The same key gives the same sandbox. Default: one that the SDK makes for its own retries. */
  idempotencyKey?: string | undefined;
}

/** How to get or create. */
export interface GetOrCreateOptions extends CallOptions, QueueOptions, ProgressOptions, Conditions {}

/** Which sandboxes to list. */
export interface ListOptions extends CallOptions {
  state?: SandboxState | undefined;
  /** `key` or `key=value`. */
  label?: string | undefined;
  /** At most this many. Default: all. */
  limit?: number | undefined;
}

/** How to delete, and how long to wait for the evidence. */
export interface DeleteOptions {
  /** Skip the grace that what runs inside gets to end by itself. */
  force?: boolean | undefined;
  /** How long to wait for the evidence; 0 only asks for the deletion. Default: 60. */
  waitSeconds?: number | undefined;
  signal?: AbortSignal | undefined;
}

/** A sandbox as the server described it, and the client that asked. */
export interface Held {
  client: Client;
  info: SandboxInfo;
}

const ROOT = "/v1/sandboxes";
// As for exec: under the idle limits of common proxies.
const LONGEST_WAIT_SECONDS = 20;
const PAGE = 1000;

export function sandboxPath(idOrName: string): string {
  return `${ROOT}/${encodeURIComponent(idOrName)}`;
}

export async function create(spec: CreateSandbox, options: CreateOptions): Promise<Held> {
  const client = await clientOf(options);
  const { signal, wait, onProgress, idempotencyKey = crypto.randomUUID() } = options;
  if (onProgress !== undefined && wait !== false)
    return createTelling(spec, onProgress, { ...options, client, idempotencyKey });
  const headers = { "Idempotency-Key": idempotencyKey };
  const query = { queue: options.queueSeconds, ...(wait === false && { wait }) };
  const call = { method: "POST", path: ROOT, json: spec, query, headers, again: "safe", signal } as const;
  return { client, info: (await client.json<SandboxInfo>(call)).body };
}

/** The same call twice, which makes one sandbox: the first says which, the second waits for it. */
async function createTelling(
  spec: CreateSandbox,
  onProgress: (event: SandboxEvent) => void,
  { onProgress: _, ...options }: CreateOptions & { client: Client },
): Promise<Held> {
  const { client } = options;
  const { info } = await create(spec, { ...options, wait: false });
  const place = { client, path: sandboxPath(info.id) };
  const follow = (signal: AbortSignal) => followEvents(place, { signal });
  return whileTelling({ onProgress, follow, placeOf: () => place }, () => create(spec, options));
}

export async function get(idOrName: string, options: CallOptions): Promise<Held> {
  const client = await clientOf(options);
  return { client, info: await look({ client, path: sandboxPath(idOrName) }, options.signal) };
}

export async function getOrCreate(
  spec: CreateSandbox & { name: string },
  options: GetOrCreateOptions,
): Promise<Held> {
  const client = await clientOf(options);
  const { name, ...json } = spec;
  const { onProgress, signal } = options;
  const path = `${ROOT}/by-name/${encodeURIComponent(name)}`;
  const query = { queue: options.queueSeconds };
  const headers = conditionHeaders(options);
  const call = { method: "PUT", path, json, query, headers, again: "safe", signal } as const;
  const ensure = async (): Promise<Held> => ({ client, info: (await client.json<SandboxInfo>(call)).body });
  if (onProgress === undefined) return ensure();
  const place = { client, path: sandboxPath(name) };
  const since = await latest(place, signal).catch(unlessMissing);
  const follow = (over: AbortSignal) => followNamed(place, since, over);
  const placeOf = ({ info }: Held) => ({ client, path: sandboxPath(info.id) });
  return whileTelling({ onProgress, follow, placeOf, since }, ensure);
}

export async function start(
  scope: Scope,
  options: QueueOptions & ProgressOptions & Waiting,
): Promise<SandboxInfo> {
  const { onProgress, signal } = options;
  if (onProgress === undefined) return act(scope, "start", options);
  const since = await latest(scope, signal);
  const follow = (over: AbortSignal) => followEvents(scope, { since, signal: over });
  return whileTelling({ onProgress, follow, placeOf: () => scope, since }, () =>
    act(scope, "start", options),
  );
}

export async function list(options: ListOptions): Promise<Held[]> {
  const client = await clientOf(options);
  const { state, label, limit = Number.POSITIVE_INFINITY, signal } = options;
  const found: Held[] = [];
  let cursor: string | undefined;
  do {
    const query = { state, label, cursor, limit: Math.min(limit - found.length, PAGE) };
    const call = { method: "GET", path: ROOT, query, again: "safe", signal } as const;
    const { body } = await client.json<{ sandboxes: SandboxInfo[]; nextCursor?: string }>(call);
    found.push(...body.sandboxes.map((info) => ({ client, info })));
    cursor = body.nextCursor;
  } while (cursor !== undefined && found.length < limit);
  return found;
}

export async function refresh(scope: Scope, signal: AbortSignal | undefined): Promise<SandboxInfo> {
  return look(scope, signal);
}

export async function act(
  scope: Pick<Scope, "client" | "path">,
  action: "start" | "stop" | "pause" | "resume" | "touch" | "release",
  options: QueueOptions & Waiting,
): Promise<SandboxInfo> {
  const path = `${scope.path}/${action}`;
  const query = { queue: options.queueSeconds };
  const call = { method: "POST", path, query, again: "safe", signal: options.signal } as const;
  return (await scope.client.json<SandboxInfo>(call)).body;
}

/** Changes what is named of how it lives and ends; the rest stays. */
export async function update(
  { client, path }: Scope,
  change: UpdateSandbox,
  signal: AbortSignal | undefined,
): Promise<SandboxInfo> {
  const call = { method: "PATCH", path, json: change, again: "safe", signal } as const;
  return (await client.json<SandboxInfo>(call)).body;
}

export async function why({ client, path }: Scope, signal: AbortSignal | undefined): Promise<Why> {
  return (await client.json<Why>({ method: "GET", path: `${path}/why`, again: "safe", signal })).body;
}

/** Also of a sandbox that was deleted: its timeline outlives it. */
export async function eventsOf(
  idOrName: string,
  options: CallOptions & EventOptions,
): Promise<SandboxEvent[]> {
  return events({ client: await clientOf(options), path: sandboxPath(idOrName) }, options);
}

/** Asks again and again, in short waits, until the server has the evidence. */
export async function remove(scope: Scope, options: DeleteOptions): Promise<void> {
  const { force, waitSeconds = 60, signal } = options;
  const deadline = Date.now() + waitSeconds * 1000;
  for (let attempt = 1; ; attempt++) {
    const leftSeconds = Math.max(0, Math.ceil((deadline - Date.now()) / 1000));
    const wait = Math.min(leftSeconds, LONGEST_WAIT_SECONDS);
    const call = {
      method: "DELETE",
      path: scope.path,
      query: { force, wait },
      again: "safe",
      signal,
    } as const;
    const status = await scope.client.json(call).then(
      (answer) => answer.status,
      (error: unknown) => goneStatus(error, attempt),
    );
    if (status !== 202 || waitSeconds === 0) return;
    if (leftSeconds <= LONGEST_WAIT_SECONDS) throw pending(waitSeconds);
  }
}

// 410 remembers a deletion; a 404 after a 202 is one that has been forgotten since. Both are what was asked for.
function goneStatus(error: unknown, attempt: number): number {
  const code = error instanceof HoldfastError ? error.code : undefined;
  if (code === "gone" || (code === "not_found" && attempt > 1)) return 204;
  throw error;
}

function pending(waitSeconds: number): HoldfastError {
  const message = `the sandbox is being deleted, but there is no evidence yet after ${waitSeconds} s`;
  return new HoldfastError("cleanup_pending", message, {
    hint: "The server goes on by itself. Ask again later, or look at its events.",
    started: "yes",
  });
}

async function look(
  scope: Pick<Scope, "client" | "path">,
  signal: AbortSignal | undefined,
): Promise<SandboxInfo> {
  return (await scope.client.json<SandboxInfo>({ method: "GET", path: scope.path, again: "safe", signal }))
    .body;
}

export async function clientOf(options: CallOptions): Promise<Client> {
  return options.client ?? (await Client.connect(options));
}
