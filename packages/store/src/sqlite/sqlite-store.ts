import type { Database, SQLQueryBindings } from "bun:sqlite";
import {
  type Holding,
  type Lease,
  type ListFilter,
  type NewLease,
  type NewSandbox,
  type RecordedEntry,
  type SandboxRow,
  type Store,
  stateOf,
  type TimelineEntry,
  type Tombstone,
} from "@holdfast/core";
import { HoldfastError } from "@holdfast/protocol";
import { explained } from "./failures.ts";
import { openDatabase } from "./open.ts";
import { type Columns, toColumns, toEntry, toLease, toSandbox, toTombstone } from "./rows.ts";

/** Rows read at once when a list is filtered by what the rows only imply. */
const PAGE = 200;

/** The store on one SQLite file. One process writes; every call is one transaction that is on the disk when it returns. */
export class SqliteStore implements Store {
  readonly #db: Database;
  readonly #newId: () => string;
  readonly #now: () => number;

  constructor(options: { path: string; newId: () => string; now: () => number }) {
    this.#db = openDatabase(options.path);
    this.#newId = options.newId;
    this.#now = options.now;
  }

  async installationId(): Promise<string> {
    return this.#write(() => {
      const found = this.#one("SELECT id FROM installation");
      if (found !== undefined) return String(found.id);
      const id = this.#newId();
      this.#insert("installation", { id, created_at: this.#now() });
      return id;
    });
  }

  async insertSandbox(
    row: NewSandbox,
    { idempotencyKey, entry }: { idempotencyKey?: string; entry: TimelineEntry },
  ): Promise<Holding> {
    return this.#write(() => {
      if (idempotencyKey !== undefined) {
        const first = this.#one("SELECT id FROM sandbox WHERE idempotency_key = ?", idempotencyKey);
        if (first !== undefined) return this.#require(String(first.id));
      }
      if (this.#one("SELECT 1 AS x FROM sandbox WHERE name = ?", row.name) !== undefined)
        throw nameTaken(row.name);
      const before = this.#tombstone(row.name);
      const { generation, fence } = before ?? { generation: 0, fence: 0 };
      const columns = toColumns({ ...row, generation, fence, version: 1 });
      this.#insert("sandbox", { ...columns, idempotency_key: idempotencyKey ?? null });
      this.#record(row.id, entry);
      return this.#require(row.id);
    });
  }

  async holding(sandboxId: string): Promise<Holding | undefined> {
    return this.#holding(this.#one("SELECT * FROM sandbox WHERE id = ?", sandboxId));
  }

  async find(idOrName: string): Promise<Holding | undefined> {
    return this.#holding(this.#one("SELECT * FROM sandbox WHERE id = ?1 OR name = ?1", idOrName));
  }

  async list(filter: ListFilter): Promise<{ holdings: Holding[]; next?: number }> {
    const holdings: Holding[] = [];
    let after = filter.after ?? 0;
    for (;;) {
      const rows = this.#all("SELECT * FROM sandbox WHERE seq > ? ORDER BY seq LIMIT ?", after, PAGE);
      for (const row of rows) {
        const holding = this.#holding(row);
        if (holding === undefined || !matches(holding, filter)) continue;
        if (holdings.length === filter.limit) return { holdings, next: after };
        holdings.push(holding);
        after = Number(row.seq);
      }
      if (rows.length < PAGE) return { holdings };
      after = Number(rows.at(-1)?.seq);
    }
  }

  async tombstone(idOrName: string): Promise<Tombstone | undefined> {
    return this.#tombstone(idOrName);
  }

  async reserve(sandbox: SandboxRow, lease: NewLease, entry: TimelineEntry): Promise<Holding | undefined> {
    return this.#write(() => {
      const now = this.#holding(this.#one("SELECT * FROM sandbox WHERE id = ?", sandbox.id));
      if (now === undefined || now.sandbox.version !== sandbox.version || now.lease !== undefined)
        return undefined;
      if (now.sandbox.desired === "deleted") return undefined;
      const generation = sandbox.generation + 1;
      const fence = sandbox.fence + 1;
      this.#update("sandbox", "id", sandbox.id, {
        desired: "active",
        generation,
        fence,
        version: sandbox.version + 1,
      });
      this.#insert("instance", {
        ...toColumns({ ...lease, generation, fence }),
        phase: "reserved",
        stop_mode: "graceful",
        attempts: 0,
        due_at: lease.createdAt,
        version: 1,
      });
      this.#record(sandbox.id, entry);
      return this.#require(sandbox.id);
    });
  }

  async save(
    before: Holding,
    change: { sandbox?: Partial<SandboxRow>; lease?: Partial<Lease>; entry?: TimelineEntry },
  ): Promise<Holding | undefined> {
    return this.#write(() => {
      const { sandbox, lease } = before;
      const now = this.#one("SELECT version FROM sandbox WHERE id = ?", sandbox.id);
      if (now?.version !== sandbox.version) return undefined;
      if (lease !== undefined) {
        const row = this.#one("SELECT version FROM instance WHERE instance_id = ?", lease.instanceId);
        if (row?.version !== lease.version) return undefined;
      }
      if (change.sandbox !== undefined) {
        this.#update(
          "sandbox",
          "id",
          sandbox.id,
          toColumns({ ...change.sandbox, version: sandbox.version + 1 }),
        );
      }
      if (change.lease !== undefined && lease !== undefined) {
        this.#update(
          "instance",
          "instance_id",
          lease.instanceId,
          toColumns({ ...change.lease, version: lease.version + 1 }),
        );
      }
      if (change.entry !== undefined) this.#record(sandbox.id, change.entry);
      return this.#require(sandbox.id);
    });
  }

  async bury(sandbox: SandboxRow): Promise<boolean> {
    return this.#write(() => {
      const now = this.#holding(this.#one("SELECT * FROM sandbox WHERE id = ?", sandbox.id));
      if (now === undefined || now.sandbox.version !== sandbox.version || now.lease !== undefined)
        return false;
      const { id, name, generation, fence } = sandbox;
      this.#insert("tombstone", { sandbox_id: id, name, generation, fence, deleted_at: this.#now() });
      this.#record(id, { type: "deleted" });
      this.#db.query("DELETE FROM instance WHERE sandbox_id = ?").run(id);
      this.#db.query("DELETE FROM sandbox WHERE id = ?").run(id);
      return true;
    });
  }

  async due(now: number, limit: number): Promise<string[]> {
    const rows = this.#all(
      `SELECT id, min(due_at) AS due FROM (
         SELECT sandbox_id AS id, due_at FROM instance WHERE due_at <= ?1
         UNION ALL SELECT id, due_at FROM sandbox WHERE due_at <= ?1
       ) GROUP BY id ORDER BY due LIMIT ?2`,
      now,
      limit,
    );
    return rows.map((row) => String(row.id));
  }

  async nextDueAt(): Promise<number | undefined> {
    const row = this.#one(
      `SELECT min(due) AS due FROM (
         SELECT min(due_at) AS due FROM instance WHERE due_at IS NOT NULL
         UNION ALL SELECT min(due_at) FROM sandbox WHERE due_at IS NOT NULL)`,
    );
    return row === undefined || row.due === null ? undefined : Number(row.due);
  }

  async unsettled(): Promise<string[]> {
    const rows = this.#all(
      `SELECT sandbox_id AS id FROM instance WHERE phase <> 'gone'
       UNION SELECT id FROM sandbox WHERE desired = 'deleted'`,
    );
    return rows.map((row) => String(row.id));
  }

  async timeline(sandboxId: string, options: { since: number; limit: number }): Promise<RecordedEntry[]> {
    const { since, limit } = options;
    const query = "SELECT * FROM timeline WHERE sandbox_id = ? AND seq > ? ORDER BY seq LIMIT ?";
    return this.#all(query, sandboxId, since, limit).map(toEntry);
  }

  close(): void {
    this.#db.close();
  }

  #holding(row: Columns | undefined): Holding | undefined {
    if (row === undefined) return undefined;
    const lease = this.#one(
      "SELECT * FROM instance WHERE sandbox_id = ? AND phase <> 'gone'",
      String(row.id),
    );
    return { sandbox: toSandbox(row), lease: lease === undefined ? undefined : toLease(lease) };
  }

  #require(sandboxId: string): Holding {
    const holding = this.#holding(this.#one("SELECT * FROM sandbox WHERE id = ?", sandboxId));
    if (holding === undefined)
      throw new HoldfastError("internal", `sandbox ${sandboxId} vanished in a transaction`);
    return holding;
  }

  #tombstone(idOrName: string): Tombstone | undefined {
    const row = this.#one(
      `SELECT * FROM tombstone WHERE sandbox_id = ?1 OR name = ?1 ORDER BY generation DESC LIMIT 1`,
      idOrName,
    );
    return row === undefined ? undefined : toTombstone(row);
  }

  #record(sandboxId: string, { type, cause, detail }: TimelineEntry): void {
    this.#insert("timeline", {
      sandbox_id: sandboxId,
      at: this.#now(),
      type,
      cause: cause ?? null,
      detail: JSON.stringify(detail ?? {}),
    });
  }

  #insert(table: string, columns: Columns): void {
    const names = Object.keys(columns);
    const marks = names.map(() => "?").join(", ");
    this.#db
      .query(`INSERT INTO ${table} (${names.join(", ")}) VALUES (${marks})`)
      .run(...Object.values(columns));
  }

  #update(table: string, key: string, id: string, columns: Columns): void {
    const sets = Object.keys(columns).map((name) => `${name} = ?`);
    this.#db
      .query(`UPDATE ${table} SET ${sets.join(", ")} WHERE ${key} = ?`)
      .run(...Object.values(columns), id);
  }

  #one(sql: string, ...values: SQLQueryBindings[]): Columns | undefined {
    return explained(() => this.#db.query<Columns, SQLQueryBindings[]>(sql).get(...values)) ?? undefined;
  }

  #all(sql: string, ...values: SQLQueryBindings[]): Columns[] {
    return explained(() => this.#db.query<Columns, SQLQueryBindings[]>(sql).all(...values));
  }

  /** Takes the write lock first, so that what is read inside is still true at the commit. */
  #write<T>(work: () => T): T {
    return explained(() => this.#db.transaction(work).immediate());
  }
}

function matches(holding: Holding, { label, states }: ListFilter): boolean {
  if (states !== undefined && !states.includes(stateOf(holding))) return false;
  if (label === undefined) return true;
  const value = holding.sandbox.labels[label.key];
  return label.value === undefined ? value !== undefined : value === label.value;
}

function nameTaken(name: string): HoldfastError {
  return new HoldfastError("already_exists", `a sandbox named ${name} exists already`, {
    hint: "choose another name, or use get-or-create (PUT /v1/sandboxes/by-name/{name}) to share it",
    started: "no",
  });
}
