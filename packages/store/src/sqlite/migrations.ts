/**
 * The schema, as numbered steps forward. A released step is never edited: the next change is the next step.
 * Times are integers in ms; structures are JSON text.
 */
export const migrations: readonly string[] = [
  `
  CREATE TABLE installation (id TEXT PRIMARY KEY, created_at INTEGER NOT NULL);

  CREATE TABLE sandbox (
    seq INTEGER PRIMARY KEY AUTOINCREMENT,
    id TEXT NOT NULL UNIQUE,
    name TEXT NOT NULL UNIQUE,
    provider TEXT NOT NULL,
    spec TEXT NOT NULL,
    labels TEXT NOT NULL,
    desired TEXT NOT NULL CHECK (desired IN ('active', 'stopped', 'deleted')),
    delete_mode TEXT NOT NULL CHECK (delete_mode IN ('graceful', 'force')),
    generation INTEGER NOT NULL,
    fence INTEGER NOT NULL,
    created_at INTEGER NOT NULL,
    launch_failures INTEGER NOT NULL,
    failure TEXT,
    last_death TEXT,
    idempotency_key TEXT UNIQUE,
    due_at INTEGER,
    version INTEGER NOT NULL
  ) STRICT;
  CREATE INDEX sandbox_due ON sandbox (due_at) WHERE due_at IS NOT NULL;

  CREATE TABLE instance (
    instance_id TEXT PRIMARY KEY,
    installation_id TEXT NOT NULL,
    sandbox_id TEXT NOT NULL,
    provider TEXT NOT NULL,
    generation INTEGER NOT NULL,
    fence INTEGER NOT NULL,
    phase TEXT NOT NULL
      CHECK (phase IN ('reserved', 'creating', 'starting', 'live', 'stop_due', 'stopping', 'gone')),
    secret TEXT NOT NULL,
    limits TEXT,
    created_at INTEGER NOT NULL,
    startup_deadline_at INTEGER NOT NULL,
    admitted_at INTEGER,
    stop_reason TEXT,
    stop_mode TEXT NOT NULL CHECK (stop_mode IN ('graceful', 'force')),
    attempts INTEGER NOT NULL,
    next_attempt_at INTEGER,
    last_error TEXT,
    evidence TEXT,
    due_at INTEGER,
    version INTEGER NOT NULL,
    CHECK ((phase = 'gone') = (evidence IS NOT NULL))
  ) STRICT;
  CREATE UNIQUE INDEX one_active ON instance (sandbox_id) WHERE phase <> 'gone';
  CREATE UNIQUE INDEX generation_once ON instance (sandbox_id, generation);
  CREATE INDEX instance_due ON instance (due_at) WHERE due_at IS NOT NULL;

  CREATE TABLE tombstone (
    sandbox_id TEXT PRIMARY KEY,
    name TEXT NOT NULL,
    generation INTEGER NOT NULL,
    fence INTEGER NOT NULL,
    deleted_at INTEGER NOT NULL
  ) STRICT;
  CREATE INDEX tombstone_name ON tombstone (name, deleted_at);

  CREATE TABLE timeline (
    seq INTEGER PRIMARY KEY AUTOINCREMENT,
    sandbox_id TEXT NOT NULL,
    at INTEGER NOT NULL,
    type TEXT NOT NULL,
    cause TEXT,
    detail TEXT NOT NULL
  ) STRICT;
  CREATE INDEX timeline_sandbox ON timeline (sandbox_id, seq);
  `,
];
