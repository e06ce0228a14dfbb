import type { Holding, Lease, SandboxRow } from "./lease.ts";
import { isSpare, NOBODY, newSandbox } from "./new-rows.ts";
import { policyOf } from "./policy.ts";
import type { Change, NewSandbox } from "./store.ts";
import { idleCheckAt } from "./transitions.ts";

// A spare is a sandbox that nobody has asked for yet, with an instance that was launched ahead. Its rows are those of any
// other, so whatever keeps those in order keeps it in order, too; only its tenant says that it is one.

/** Nobody asked for one like it in this time: it goes. */
const SPARE_SECONDS = 300;
/** Its keeper counts its age from a moment earlier than the rows do, and ends by itself: too near to that it is not given away. */
const NEAR_ITS_END_MS = 10_000;

type Shaped = Pick<SandboxRow, "provider" | "spec" | "policy">;

/** Everything that a launch takes from the rows, as a text to compare. The rest is told to the keeper, or is nothing to it. */
export function shapeOf({ provider, spec, policy }: Shaped): string {
  const { env: _, provider: __, ...rest } = spec;
  return JSON.stringify({ provider, ...rest, lifetimeSeconds: policy.lifetimeSeconds }, sorted);
}

/** Its host name is its name, and its disk is empty: a launch ahead can know of no other. */
export function fitsASpare({ id, name, restoresFrom }: NewSandbox): boolean {
  return name === id && restoresFrom === null;
}

/** One of the same shape. What it may be told only by its owner, his environment, is not in it. */
export function newSpare(id: string, { provider, spec, policy }: Shaped, now: number): NewSandbox {
  const { env: _, ...rest } = spec;
  const ends = { onIdle: "keep", filesystem: "ephemeral", maxLifetimeSeconds: SPARE_SECONDS } as const;
  const own = policyOf({ ...ends, lifetimeSeconds: policy.lifetimeSeconds });
  const row = newSandbox({ id, name: id, provider, spec: rest, policy: own, labels: {} }, now);
  return { ...row, tenantId: NOBODY };
}

/** It lives, and will for a while. */
export function isReadySpare(holding: Holding): holding is Holding & { lease: Lease } {
  const { sandbox, lease, readAt } = holding;
  if (!isSpare(sandbox) || sandbox.desired !== "active" || lease?.phase !== "live") return false;
  return lease.nextAttemptAt === null && (lease.hardStopAt ?? readAt) - readAt > NEAR_ITS_END_MS;
}

/** What changes in its lease: from now on it is as if it had come alive for its owner in this moment. */
export function givenAway({ tenantId, policy }: NewSandbox, now: number): Partial<Lease> {
  const { maxLifetimeSeconds } = policy;
  return {
    tenantId,
    admittedAt: now,
    idleCheckAt: idleCheckAt(policy, now),
    hardStopAt: maxLifetimeSeconds === null ? null : now + maxLifetimeSeconds * 1000,
  };
}

/** Wants it gone, at once: there is nothing in it that could be lost. */
export function givenUp({ lease, readAt }: Holding, because: string): Change {
  return {
    sandbox: { desired: "deleted", deleteMode: "force", deleteReason: "spare_given_up" },
    // A stop that waits for its next attempt is tried now.
    ...(typeof lease?.nextAttemptAt === "number" && {
      leases: { [lease.instanceId]: { nextAttemptAt: readAt } },
    }),
    entries: [{ type: "given_up", cause: "spare_given_up", detail: { because } }],
  };
}

/** The rows say that it is a spare, its keeper that it is somebody's: they were restored from before it was given away. */
export function wasGivenAway({ sandbox, lease, readAt }: Holding & { lease: Lease }): Change {
  const { tenantId, policy } = newSandbox({ ...sandbox, policy: policyOf({}) }, readAt);
  return {
    sandbox: { tenantId, policy, labels: { "holdfast.recovered": "true" }, lastUsedAt: readAt },
    leases: {
      [lease.instanceId]: { tenantId, idleCheckAt: idleCheckAt(policy, readAt), hardStopAt: null },
    },
    entries: [{ type: "recovered", cause: "restored_rows", detail: { was: "spare" } }],
  };
}

/** For JSON: the same fields in the same order, whoever wrote them. */
function sorted(_: string, value: unknown): unknown {
  if (typeof value !== "object" || value === null || Array.isArray(value)) return value;
  return Object.fromEntries(Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1)));
}
