/**
 * The schema, as numbered steps forward. A released step is never edited: the next change is the next step.
 * Times are integers in ms; structures are JSON text. `{now}` stands for the time of the upgrade.
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
  `
  ALTER TABLE installation ADD COLUMN home TEXT;

  DROP INDEX sandbox_due;
  ALTER TABLE sandbox RENAME TO sandbox_1;
  CREATE TABLE sandbox (
    seq INTEGER PRIMARY KEY AUTOINCREMENT,
    id TEXT NOT NULL UNIQUE,
    name TEXT NOT NULL UNIQUE,
    tenant_id TEXT NOT NULL,
    provider TEXT NOT NULL,
    spec TEXT NOT NULL,
    policy TEXT NOT NULL,
    labels TEXT NOT NULL,
    desired TEXT NOT NULL CHECK (desired IN ('active', 'stopped', 'deleted')),
    delete_mode TEXT NOT NULL CHECK (delete_mode IN ('graceful', 'force')),
    delete_reason TEXT,
    generation INTEGER NOT NULL,
    fence INTEGER NOT NULL,
    has_disk INTEGER NOT NULL CHECK (has_disk IN (0, 1)),
    created_at INTEGER NOT NULL,
    last_used_at INTEGER NOT NULL,
    turns TEXT NOT NULL,
    claim TEXT,
    claim_fence INTEGER NOT NULL,
    launch_failures INTEGER NOT NULL,
    failure TEXT,
    last_death TEXT,
    disk_retry_at INTEGER,
    idempotency_key TEXT UNIQUE
  ) STRICT;
  CREATE INDEX sandbox_deleted ON sandbox (id) WHERE desired = 'deleted';
  CREATE TRIGGER sandbox_only_grows BEFORE UPDATE OF generation, fence, claim_fence ON sandbox
    WHEN NEW.generation < OLD.generation OR NEW.fence < OLD.fence OR NEW.claim_fence < OLD.claim_fence
    BEGIN SELECT RAISE(ABORT, 'a generation or a fence never decreases'); END;

  ALTER TABLE instance RENAME TO instance_1;
  DROP INDEX one_active;
  DROP INDEX generation_once;
  DROP INDEX instance_due;
  CREATE TABLE instance (
    instance_id TEXT PRIMARY KEY,
    installation_id TEXT NOT NULL,
    sandbox_id TEXT NOT NULL,
    tenant_id TEXT NOT NULL,
    provider TEXT NOT NULL,
    generation INTEGER NOT NULL,
    fence INTEGER NOT NULL,
    origin TEXT NOT NULL CHECK (origin IN ('launch', 'orphan')),
    phase TEXT NOT NULL CHECK (phase IN
      ('reserved', 'creating', 'starting', 'live', 'stop_due', 'stopping', 'quarantined', 'debt', 'gone')),
    secret TEXT NOT NULL,
    limits TEXT,
    res_memory_b INTEGER NOT NULL,
    res_disk_b INTEGER NOT NULL,
    created_at INTEGER NOT NULL,
    not_after INTEGER NOT NULL,
    create_sent_at INTEGER,
    settle_until INTEGER,
    startup_deadline_at INTEGER NOT NULL,
    admitted_at INTEGER,
    idle_check_at INTEGER,
    hard_stop_at INTEGER,
    stop_reason TEXT,
    stop_mode TEXT NOT NULL CHECK (stop_mode IN ('graceful', 'force')),
    attempts INTEGER NOT NULL,
    attempt_deadline_at INTEGER,
    next_attempt_at INTEGER,
    missing_since INTEGER,
    last_error TEXT,
    evidence_kind TEXT CHECK (evidence_kind IN
      ('never_requested', 'exited', 'host_reset', 'not_found_after_settle')),
    evidence_at INTEGER,
    evidence_detail TEXT,
    CHECK ((phase = 'gone') = (evidence_kind IS NOT NULL)),
    CHECK ((evidence_kind IS NULL) = (evidence_at IS NULL)),
    CHECK ((evidence_kind IS NULL) = (evidence_detail IS NULL))
  ) STRICT;
  CREATE UNIQUE INDEX one_active ON instance (sandbox_id) WHERE phase NOT IN ('gone', 'debt');
  CREATE UNIQUE INDEX generation_once ON instance (sandbox_id, generation) WHERE origin = 'launch';
  CREATE INDEX instance_sandbox ON instance (sandbox_id);
  CREATE INDEX instance_provider ON instance (provider);
  -- All that admission counts, so that it reads nothing else.
  CREATE INDEX instance_usage ON instance (provider, tenant_id, phase, res_memory_b, res_disk_b)
    WHERE phase <> 'gone';
  CREATE INDEX instance_gone ON instance (evidence_at) WHERE phase = 'gone';
  CREATE TRIGGER instance_only_grows BEFORE UPDATE OF generation, fence ON instance
    WHEN NEW.generation < OLD.generation OR NEW.fence < OLD.fence
    BEGIN SELECT RAISE(ABORT, 'a generation or a fence never decreases'); END;

  -- One row for each sandbox id that anything is known of: the version that guards all of its rows, when somebody must
  -- look at them, and who does. It stays as long as the tombstone does, so that its numbers only grow.
  CREATE TABLE work (
    sandbox_id TEXT PRIMARY KEY,
    provider TEXT NOT NULL,
    due_at INTEGER,
    version INTEGER NOT NULL,
    ticket_owner TEXT,
    ticket_no INTEGER NOT NULL,
    ticket_until INTEGER
  ) STRICT;
  CREATE INDEX work_due ON work (due_at, sandbox_id) WHERE due_at IS NOT NULL;
  CREATE INDEX work_ticket ON work (ticket_until) WHERE ticket_until IS NOT NULL;

  CREATE TABLE job (
    name TEXT PRIMARY KEY,
    due_at INTEGER NOT NULL,
    memory TEXT NOT NULL,
    ticket_owner TEXT,
    ticket_no INTEGER NOT NULL,
    ticket_until INTEGER
  ) STRICT;

  CREATE TABLE host (
    provider TEXT PRIMARY KEY,
    failures INTEGER NOT NULL,
    next_probe_at INTEGER,
    last_error TEXT,
    last_seen_at INTEGER,
    closed_because TEXT
  ) STRICT;

  ALTER TABLE tombstone RENAME TO tombstone_1;
  DROP INDEX tombstone_name;
  CREATE TABLE tombstone (
    sandbox_id TEXT PRIMARY KEY,
    name TEXT NOT NULL,
    generation INTEGER NOT NULL,
    fence INTEGER NOT NULL,
    deleted_at INTEGER NOT NULL,
    cause TEXT,
    keep_until INTEGER NOT NULL
  ) STRICT;
  CREATE INDEX tombstone_name ON tombstone (name);
  CREATE INDEX tombstone_keep ON tombstone (keep_until);

  ALTER TABLE timeline ADD COLUMN actor TEXT;

  -- Whether they were in use just now is not known, so they count as used: an upgrade reaps nobody.
  INSERT INTO sandbox
    SELECT seq, id, name, 'default', provider, spec,
      '{"persistent":true,"filesystem":"persistent","onIdle":"stop","lifetimeSeconds":1800,"maxLifetimeSeconds":null,"turnTimeoutSeconds":3600}',
      labels, desired, delete_mode, NULL, generation, fence, 1, created_at, {now}, '[]', NULL, 0,
      launch_failures, failure, last_death, NULL, idempotency_key
    FROM sandbox_1;
  UPDATE sqlite_sequence SET seq = (SELECT seq FROM sqlite_sequence WHERE name = 'sandbox_1')
    WHERE name = 'sandbox';

  -- What may have been asked for and was not seen to start may still arrive for a minute.
  INSERT INTO instance
    SELECT instance_id, installation_id, sandbox_id, 'default', provider, generation, fence, 'launch', phase, secret,
      limits, 0, 0, created_at, startup_deadline_at,
      CASE WHEN phase <> 'reserved' THEN created_at END,
      CASE WHEN phase IN ('creating', 'stop_due', 'stopping') AND admitted_at IS NULL THEN {now} + 60000 END,
      startup_deadline_at, admitted_at, NULL, NULL, stop_reason, stop_mode, attempts, NULL, next_attempt_at, NULL,
      last_error, evidence ->> '$.kind', evidence ->> '$.at', evidence ->> '$.detail'
    FROM instance_1;

  INSERT INTO work
    SELECT s.id, s.provider,
      CASE i.phase
        WHEN 'creating' THEN min(coalesce(i.next_attempt_at, i.created_at), i.startup_deadline_at)
        WHEN 'starting' THEN min(coalesce(i.next_attempt_at, i.created_at), i.startup_deadline_at)
        WHEN 'live' THEN coalesce(i.next_attempt_at, i.created_at)
        WHEN 'stop_due' THEN coalesce(i.next_attempt_at, i.created_at)
        ELSE coalesce(i.created_at, CASE WHEN s.desired = 'deleted' THEN s.created_at END)
      END, 1, NULL, 0, NULL
    FROM sandbox s LEFT JOIN instance i ON i.sandbox_id = s.id AND i.phase <> 'gone';

  INSERT INTO tombstone
    SELECT sandbox_id, name, generation, fence, deleted_at, NULL, {now} + 86400000 FROM tombstone_1;
  INSERT INTO work SELECT sandbox_id, '', NULL, 1, NULL, 0, NULL FROM tombstone WHERE true
    ON CONFLICT DO NOTHING;

  DROP TABLE sandbox_1;
  DROP TABLE instance_1;
  DROP TABLE tombstone_1;
  `,
  `
  ALTER TABLE sandbox ADD COLUMN ports TEXT NOT NULL DEFAULT '[]';
  `,
  `
  ALTER TABLE sandbox ADD COLUMN restores_from TEXT;
  CREATE INDEX sandbox_restores ON sandbox (restores_from) WHERE restores_from IS NOT NULL;

  CREATE TABLE snapshot (
    seq INTEGER PRIMARY KEY AUTOINCREMENT,
    id TEXT NOT NULL UNIQUE,
    name TEXT NOT NULL UNIQUE,
    tenant_id TEXT NOT NULL,
    provider TEXT NOT NULL,
    sandbox_id TEXT NOT NULL,
    generation INTEGER NOT NULL,
    origin TEXT NOT NULL,
    spec TEXT NOT NULL,
    labels TEXT NOT NULL,
    phase TEXT NOT NULL CHECK (phase IN ('making', 'ready', 'failed', 'deleting')),
    parts TEXT NOT NULL,
    checksum TEXT,
    copied_bytes INTEGER NOT NULL,
    created_at INTEGER NOT NULL,
    expires_at INTEGER,
    failure TEXT,
    owner TEXT NOT NULL,
    busy_until INTEGER NOT NULL,
    version INTEGER NOT NULL,
    idempotency_key TEXT UNIQUE
  ) STRICT;
  CREATE INDEX snapshot_sandbox ON snapshot (sandbox_id);
  CREATE INDEX snapshot_provider ON snapshot (provider);
  `,
  `
  ALTER TABLE sandbox ADD COLUMN disk_history TEXT;
  UPDATE sandbox SET policy = json_insert(policy, '$.persistAcrossRestarts', json('true'));

  ALTER TABLE instance RENAME TO instance_2;
  DROP INDEX one_active;
  DROP INDEX generation_once;
  DROP INDEX instance_sandbox;
  DROP INDEX instance_provider;
  DROP INDEX instance_usage;
  DROP INDEX instance_gone;
  DROP TRIGGER instance_only_grows;
  CREATE TABLE instance (
    instance_id TEXT PRIMARY KEY,
    installation_id TEXT NOT NULL,
    sandbox_id TEXT NOT NULL,
    tenant_id TEXT NOT NULL,
    provider TEXT NOT NULL,
    generation INTEGER NOT NULL,
    fence INTEGER NOT NULL,
    origin TEXT NOT NULL CHECK (origin IN ('launch', 'orphan')),
    phase TEXT NOT NULL CHECK (phase IN
      ('reserved', 'creating', 'starting', 'live', 'pausing', 'paused', 'resuming', 'stop_due', 'stopping',
       'quarantined', 'debt', 'gone')),
    secret TEXT NOT NULL,
    limits TEXT,
    res_memory_b INTEGER NOT NULL,
    res_disk_b INTEGER NOT NULL,
    created_at INTEGER NOT NULL,
    not_after INTEGER NOT NULL,
    create_sent_at INTEGER,
    settle_until INTEGER,
    startup_deadline_at INTEGER NOT NULL,
    admitted_at INTEGER,
    idle_check_at INTEGER,
    hard_stop_at INTEGER,
    stop_reason TEXT,
    stop_mode TEXT NOT NULL CHECK (stop_mode IN ('graceful', 'force')),
    attempts INTEGER NOT NULL,
    attempt_deadline_at INTEGER,
    next_attempt_at INTEGER,
    missing_since INTEGER,
    last_error TEXT,
    evidence_kind TEXT CHECK (evidence_kind IN
      ('never_requested', 'exited', 'host_reset', 'not_found_after_settle')),
    evidence_at INTEGER,
    evidence_detail TEXT,
    CHECK ((phase = 'gone') = (evidence_kind IS NOT NULL)),
    CHECK ((evidence_kind IS NULL) = (evidence_at IS NULL)),
    CHECK ((evidence_kind IS NULL) = (evidence_detail IS NULL))
  ) STRICT;
  CREATE UNIQUE INDEX one_active ON instance (sandbox_id) WHERE phase NOT IN ('gone', 'debt');
  CREATE UNIQUE INDEX generation_once ON instance (sandbox_id, generation) WHERE origin = 'launch';
  CREATE INDEX instance_sandbox ON instance (sandbox_id);
  CREATE INDEX instance_provider ON instance (provider);
  -- All that admission counts, so that it reads nothing else.
  CREATE INDEX instance_usage ON instance (provider, tenant_id, phase, res_memory_b, res_disk_b)
    WHERE phase <> 'gone';
  CREATE INDEX instance_gone ON instance (evidence_at) WHERE phase = 'gone';
  CREATE TRIGGER instance_only_grows BEFORE UPDATE OF generation, fence ON instance
    WHEN NEW.generation < OLD.generation OR NEW.fence < OLD.fence
    BEGIN SELECT RAISE(ABORT, 'a generation or a fence never decreases'); END;
  INSERT INTO instance SELECT * FROM instance_2;
  DROP TABLE instance_2;
  `,
  `
  ALTER TABLE sandbox ADD COLUMN disk_attempts INTEGER NOT NULL DEFAULT 0;
  `,
];
