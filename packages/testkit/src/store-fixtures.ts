import type {
  AdmissionRules,
  Change,
  Holding,
  Lease,
  Ledger,
  NewLease,
  NewSandbox,
  Store,
  Ticket,
} from "@holdfast/core";

/** A store as the suite gets it: empty. */
export interface StoreUnderTest {
  /** As many as there may be servers on it, each with connections of its own. */
  readonly stores: readonly [Store, ...Store[]];
  /** A statement past the store, which may be refused by the database alone. */
  raw(sql: string): Promise<void>;
  /** The same, though the database's checks forbid it: what only another version could have written. */
  rawUnchecked(sql: string): Promise<void>;
  dispose(): Promise<void>;
}

/** What the suites' parts get: the store under test is a new one in each test. */
export type Context = () => StoreUnderTest & { readonly store: Store };

/** Which of the stores the `i`-th caller uses. */
export function storeOf({ stores }: StoreUnderTest, i: number): Store {
  return stores[i % stores.length] ?? stores[0];
}

export const exited = { kind: "exited", at: 5, detail: "pid 7 is gone" } as const;
export const gone = { phase: "gone", evidence: exited } as const;

export function sandboxRow(over: Partial<NewSandbox> = {}): NewSandbox {
  return {
    id: "s1",
    name: "one",
    tenantId: "default",
    provider: "fake",
    spec: {},
    policy: {
      persistent: true,
      lifetimeSeconds: 1800,
      onIdle: "stop",
      filesystem: "persistent",
      maxLifetimeSeconds: null,
      turnTimeoutSeconds: 3600,
      persistAcrossRestarts: true,
    },
    labels: {},
    desired: "active",
    deleteMode: "graceful",
    deleteReason: null,
    createdAt: 1_000,
    lastUsedAt: 1_000,
    turns: [],
    claim: null,
    launchFailures: 0,
    failure: null,
    lastDeath: null,
    diskHistory: null,
    diskRetryAt: null,
    diskAttempts: 0,
    ports: [],
    restoresFrom: null,
    ...over,
  };
}

export function newLease(over: Partial<NewLease> = {}): NewLease {
  return {
    instanceId: "i1",
    installationId: "installation",
    sandboxId: "s1",
    tenantId: "default",
    provider: "fake",
    secret: "secret",
    reservation: { memoryBytes: 100, diskBytes: 10 },
    createdAt: 1_000,
    notAfter: 61_000,
    startupDeadlineAt: 121_000,
    ...over,
  };
}

/** Of an instance that was found without a row. */
export function orphan(over: Partial<Lease> = {}): Lease {
  return {
    ...newLease(),
    generation: 1,
    fence: 1,
    origin: "orphan",
    phase: "stop_due",
    limits: null,
    createSentAt: null,
    settleUntil: null,
    admittedAt: null,
    idleCheckAt: null,
    hardStopAt: null,
    stopReason: "orphan",
    stopMode: "graceful",
    attempts: 0,
    attemptDeadlineAt: null,
    nextAttemptAt: null,
    missingSince: null,
    lastError: null,
    evidence: null,
    ...over,
  };
}

export function rules(over: Partial<AdmissionRules> = {}): AdmissionRules {
  return {
    tenantQuota: null,
    slots: null,
    minFreeDisk: { bytes: 0, share: 0, inodeShare: 0 },
    measured: {
      slots: null,
      memoryBytes: null,
      disk: { sizeBytes: 1_000, freeBytes: 1_000, inodes: 0, freeInodes: 0 },
    },
    closedBecause: null,
    ...over,
  };
}

export function insert(store: Store, over: Partial<NewSandbox> = {}): Promise<Holding> {
  return store.insertSandbox(sandboxRow(over), { entry: { type: "created" } });
}

/** A sandbox with a reserved instance. */
export async function insertReserved(store: Store, id = "s1"): Promise<Holding> {
  const holding = await insert(store, { id, name: `name-${id}` });
  return must(store.reserve(holding, newLease({ sandboxId: id, instanceId: `i-${id}` }), rules()));
}

/** Of an id that nothing is known of. */
export function nothingKnown(sandboxId: string): Ledger {
  return { sandboxId, sandbox: undefined, lease: undefined, debts: [], version: 0, readAt: 0 };
}

export async function saved(store: Store, before: Ledger, change: Change, ticket?: Ticket): Promise<Holding> {
  return (await must(store.save(before, change, ticket))) as Holding;
}

export async function must<T>(value: Promise<T | undefined>): Promise<T> {
  const got = await value;
  if (got === undefined) throw new Error("the store did not take it");
  return got;
}

export async function types(store: Store, sandboxId: string): Promise<string[]> {
  return (await store.timeline(sandboxId, { since: 0, limit: 100 })).map(({ type }) => type);
}
