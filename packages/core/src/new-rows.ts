import type { DiskHistory } from "./continuity.ts";
import type { Lease, SandboxRow } from "./lease.ts";
import type { NewSandbox } from "./store.ts";

/** Until there are more of them. */
export const TENANT = "default";

/** Whose a spare is (`spare.ts`). So it counts against no quota, and to give it away is to give it a tenant. */
export const NOBODY = "nobody";

export function isSpare({ tenantId }: Pick<SandboxRow, "tenantId">): boolean {
  return tenantId === NOBODY;
}

/** A sandbox that nobody has used or spoiled yet. */
export function newSandbox(
  asked: Pick<SandboxRow, "id" | "name" | "provider" | "spec" | "policy" | "labels"> & {
    readonly restoresFrom?: string | null;
    readonly diskHistory?: DiskHistory | null;
  },
  now: number,
): NewSandbox {
  return {
    restoresFrom: null,
    diskHistory: null,
    ...asked,
    tenantId: TENANT,
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
    diskAttempts: 0,
    ports: [],
  };
}

/** A lease under which nothing was asked for yet. */
export const untouchedLease = {
  origin: "launch",
  phase: "reserved",
  limits: null,
  createSentAt: null,
  settleUntil: null,
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
} as const satisfies Partial<Lease>;
