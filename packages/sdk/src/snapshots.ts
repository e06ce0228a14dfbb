import type {
  CreateSnapshot,
  ForkRequest,
  SandboxEvent,
  Sandbox as SandboxInfo,
  Snapshot as SnapshotInfo,
} from "@holdfast/protocol";
import { HoldfastError } from "@holdfast/protocol/errors";
import { sleep } from "./backoff.ts";
import type { Client } from "./client.ts";
import { act, type CallOptions, clientOf, sandboxPath } from "./lifecycle.ts";
import { whileTelling } from "./progress.ts";
import type { Scope, Waiting } from "./scope.ts";
import { followEvents } from "./timeline.ts";

/** What to call a snapshot, and how long to keep it. */
export interface SnapshotOptions extends CreateSnapshot {
  /** Called now and then with what was copied so far. Blocks that are shared need no copy. */
  onProgress?: ((copiedBytes: number) => void) | undefined;
  signal?: AbortSignal | undefined;
}

/** Which snapshots to list. */
export interface ListSnapshotsOptions extends CallOptions {
  /** `key` or `key=value`. */
  label?: string | undefined;
}

/** What the forks are called, and what differs in how they live. */
export interface ForkOptions extends Omit<ForkRequest, "count"> {
  /** Told what happens while it waits for one of them: `restoring` says how much of its files is copied. */
  onProgress?: ((event: SandboxEvent, fork: SandboxInfo) => void) | undefined;
  signal?: AbortSignal | undefined;
}

/** What to call what is imported, and where it is to be. */
export interface ImportOptions extends CallOptions {
  name?: string | undefined;
  /** Where it is to be. Default: the server's own choice for sandboxes. */
  provider?: string | undefined;
  expiresInSeconds?: number | undefined;
}

const ROOT = "/v1/snapshots";
const PAGE = 1000;
const LOOK_EVERY_MS = 200;

/**
 * A sandbox's files at one moment: `/workspace` and the home directory, not its processes. It outlives its sandbox.
 *
 * @example
 * ```ts
 * const before = await sbx.snapshot({ name: "before-upgrade", expiresInSeconds: 86_400 });
 * const again = await Sandbox.create({ fromSnapshot: before.id });
 * ```
 */
export class Snapshot {
  readonly id: string;
  readonly #client: Client;
  #info: SnapshotInfo;

  /** @internal */
  constructor(client: Client, info: SnapshotInfo) {
    this.id = info.snapshotId;
    this.#client = client;
    this.#info = info;
  }

  /**
   * The snapshot with this id or name; `not_found` if there is none.
   *
   * @example
   * ```ts
   * const before = await Snapshot.get("before-upgrade");
   * ```
   */
  static async get(idOrName: string, options: CallOptions = {}): Promise<Snapshot> {
    const client = await clientOf(options);
    return new Snapshot(client, await look(client, idOrName, options.signal));
  }

  /**
   * All snapshots, or those with a label.
   *
   * @example
   * ```ts
   * for (const { name, info } of await Snapshot.list()) console.log(name, info.sizeBytes);
   * ```
   */
  static async list(options: ListSnapshotsOptions = {}): Promise<Snapshot[]> {
    const client = await clientOf(options);
    const { label, signal } = options;
    return (await listAt(client, ROOT, { label, signal })).map((info) => new Snapshot(client, info));
  }

  /**
   * From an archive that `export` gave, of any provider. Resolves when it is whole; a damaged one leaves nothing.
   *
   * @example
   * ```ts
   * await Snapshot.import(Bun.file("before.tar").stream(), { name: "before" });
   * ```
   */
  static async import(
    archive: ReadableStream<Uint8Array> | Blob | Uint8Array,
    options: ImportOptions = {},
  ): Promise<Snapshot> {
    const client = await clientOf(options);
    const { name, provider, expiresInSeconds, signal } = options;
    const query = { name, provider, expiresInSeconds };
    const path = `${ROOT}/import`;
    const call = { method: "POST", path, query, body: archive, again: "never", signal } as const;
    return new Snapshot(client, (await client.json<SnapshotInfo>(call)).body);
  }

  /** Everything the server last said about it. `refresh` asks again. */
  get info(): Readonly<SnapshotInfo> {
    return this.#info;
  }

  /** Unique on its server; it can be used wherever an id can. */
  get name(): string {
    return this.#info.name;
  }

  /**
   * Asks the server for the present state.
   *
   * @example
   * ```ts
   * const { state } = (await snapshot.refresh()).info;
   * ```
   */
  async refresh(options: Waiting = {}): Promise<this> {
    this.#info = await look(this.#client, this.id, options.signal);
    return this;
  }

  /**
   * All of it as one portable tar archive, its manifest first. It cannot be continued: begin again after an error.
   *
   * @example
   * ```ts
   * await Bun.write("before.tar", new Response(await snapshot.export()));
   * ```
   */
  async export(options: Waiting = {}): Promise<ReadableStream<Uint8Array>> {
    const path = `${pathOf(this.id)}/archive`;
    const { body } = await this.#client.open({ method: "GET", path, again: "safe", signal: options.signal });
    if (body === null) throw new HoldfastError("internal", "the server sent no archive");
    return body;
  }

  /**
   * Removes it, at once or as soon as no sandbox is being made from it. A second time changes nothing.
   *
   * @example
   * ```ts
   * await snapshot.delete();
   * ```
   */
  async delete(options: Waiting = {}): Promise<void> {
    const call = { method: "DELETE", path: pathOf(this.id), again: "safe", signal: options.signal } as const;
    await this.#client.json(call).catch(unlessGone);
  }
}

/** Resolves when it is whole. The server goes on also if we are gone. */
export async function makeSnapshot(scope: Scope, options: SnapshotOptions): Promise<Snapshot> {
  const { onProgress, signal, ...json } = options;
  const headers = { "Idempotency-Key": crypto.randomUUID() };
  const path = `${scope.path}/snapshots`;
  const query = { wait: false };
  const call = { method: "POST", path, query, json, headers, again: "safe", signal } as const;
  let { body: info } = await scope.client.json<SnapshotInfo>(call);
  while (info.state === "making") {
    onProgress?.(info.copiedBytes ?? 0);
    await sleep(LOOK_EVERY_MS, signal);
    info = await look(scope.client, info.snapshotId, signal);
  }
  if (info.state !== "ready") throw failed(info);
  return new Snapshot(scope.client, info);
}

export async function snapshotsOf(scope: Scope, signal: AbortSignal | undefined): Promise<Snapshot[]> {
  const found = await listAt(scope.client, `${scope.path}/snapshots`, { signal });
  return found.map((info) => new Snapshot(scope.client, info));
}

export async function fork(
  scope: Scope,
  count: number,
  { signal, onProgress, ...wanted }: ForkOptions,
): Promise<SandboxInfo[]> {
  const headers = { "Idempotency-Key": crypto.randomUUID() };
  const path = `${scope.path}/fork`;
  const json = { count, ...wanted };
  const query = onProgress === undefined ? {} : { wait: false };
  const call = { method: "POST", path, query, json, headers, again: "safe", signal } as const;
  const { sandboxes } = (await scope.client.json<{ sandboxes: SandboxInfo[] }>(call)).body;
  if (onProgress === undefined) return sandboxes;
  return Promise.all(
    sandboxes.map((info) => {
      const of = { client: scope.client, path: sandboxPath(info.id) };
      const told = (event: SandboxEvent) => onProgress(event, info);
      const follow = (over: AbortSignal) => followEvents(of, { signal: over });
      return whileTelling({ onProgress: told, follow, placeOf: () => of }, () =>
        act(of, "start", { signal }),
      );
    }),
  );
}

async function listAt(
  client: Client,
  path: string,
  { label, signal }: { label?: string | undefined; signal: AbortSignal | undefined },
): Promise<SnapshotInfo[]> {
  const found: SnapshotInfo[] = [];
  let cursor: string | undefined;
  do {
    const query = { label, cursor, limit: PAGE };
    const call = { method: "GET", path, query, again: "safe", signal } as const;
    const { body } = await client.json<{ snapshots: SnapshotInfo[]; nextCursor?: string }>(call);
    found.push(...body.snapshots);
    cursor = body.nextCursor;
  } while (cursor !== undefined);
  return found;
}

async function look(client: Client, id: string, signal: AbortSignal | undefined): Promise<SnapshotInfo> {
  return (await client.json<SnapshotInfo>({ method: "GET", path: pathOf(id), again: "safe", signal })).body;
}

function pathOf(idOrName: string): string {
  return `${ROOT}/${encodeURIComponent(idOrName)}`;
}

function unlessGone(error: unknown): void {
  if (!(error instanceof HoldfastError && error.code === "not_found")) throw error;
}

function failed({ name, failure, state }: SnapshotInfo): HoldfastError {
  return new HoldfastError("internal", `snapshot ${name} could not be made: ${failure ?? state}`, {
    hint: "What was copied is removed again; nothing of the sandbox was changed.",
  });
}
