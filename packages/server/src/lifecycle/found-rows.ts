import {
  type FoundInstance,
  type Lease,
  type Ledger,
  type NewSandbox,
  newSandbox,
  policyOf,
  TENANT,
  untouchedLease,
} from "@holdfast/core";

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
    ...untouchedLease,
    ...ref,
    tenantId: TENANT,
    provider,
    fence: fence ?? 0,
    origin: "orphan",
    phase: "stop_due",
    secret: "",
    reservation: { memoryBytes: 0, diskBytes: 0 },
    createdAt: createdAt ?? now,
    notAfter: now,
    createSentAt: createdAt,
    startupDeadlineAt: now,
  };
}

/** A sandbox for a disk whose own the rows have forgotten; whoever owns the work on it can find it by its id. */
export function recoveredSandbox(provider: string, sandboxId: string, now: number): NewSandbox {
  const labels = { "holdfast.recovered": "true" };
  const name = `recovered-${sandboxId}`;
  return newSandbox({ id: sandboxId, name, provider, spec: {}, policy: policyOf({}), labels }, now);
}
