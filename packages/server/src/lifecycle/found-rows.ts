import { type FoundInstance, type Lease, type Ledger, type NewSandbox, policyOf } from "@holdfast/core";

// Rows for what a sweep found.

/** To be stopped; beside another instance it must not stand in the way. */
export function hunted(
  lease: Lease,
  { ledger, because, at }: { ledger: Ledger; because: string; at: number },
): Lease {
  const isBeside = ledger.lease !== undefined && ledger.lease.instanceId !== lease.instanceId;
  return {
    ...lease,
    phase: isBeside ? "debt" : "stop_due",
    stopReason: because,
    stopMode: "graceful",
    attempts: 0,
    nextAttemptAt: at,
    attemptDeadlineAt: null,
    missingSince: null,
    evidence: null,
  };
}

/** A row for an instance that has none. It is never admitted, so it needs no secret. */
export function foundLease(provider: string, { ref, fence, createdAt }: FoundInstance, now: number): Lease {
  return {
    ...ref,
    tenantId: "default",
    provider,
    fence: fence ?? 0,
    origin: "orphan",
    phase: "stop_due",
    secret: "",
    limits: null,
    reservation: { memoryBytes: 0, diskBytes: 0 },
    createdAt: createdAt ?? now,
    notAfter: now,
    createSentAt: createdAt,
    settleUntil: null,
    startupDeadlineAt: now,
    admittedAt: null,
    idleCheckAt: null,
    hardStopAt: null,
    stopReason: null,
    stopMode: "graceful",
    attempts: 0,
    attemptDeadlineAt: null,
    nextAttemptAt: null,
    missingSince: null,
    lastError: null,
    evidence: null,
  };
}

/** A sandbox for a disk whose own the rows have forgotten; whoever owns the work on it can find it by its id. */
export function recoveredSandbox(provider: string, sandboxId: string, now: number): NewSandbox {
  return {
    id: sandboxId,
    name: `recovered-${sandboxId}`,
    tenantId: "default",
    provider,
    spec: {},
    policy: policyOf({}),
    labels: { "holdfast.recovered": "true" },
    desired: "active",
    deleteMode: "graceful",
    deleteReason: null,
    createdAt: now,
    lastUsedAt: now,
    turns: [],
    claim: null,
    launchFailures: 0,
    failure: null,
    lastDeath: null,
    diskRetryAt: null,
  };
}
