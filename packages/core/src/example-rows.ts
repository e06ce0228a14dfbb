import type { Holding, Lease, Ledger, SandboxRow } from "./lease.ts";
import { newSandbox, TENANT, untouchedLease } from "./new-rows.ts";
import { policyOf } from "./policy.ts";
import type { FoundDisk, FoundInstance } from "./provider.ts";

// Rows for tests: a sandbox and its lease as they are when nothing is wrong.

export const NOW = 1_000_000;

export function aSandbox(over: Partial<SandboxRow> = {}): SandboxRow {
  const asked = { id: "s1", name: "one", provider: "fake", spec: {}, policy: policyOf({}), labels: {} };
  return {
    ...newSandbox(asked, NOW - 5_000),
    generation: 1,
    fence: 1,
    hasDisk: true,
    lastUsedAt: NOW - 1_000,
    claimFence: 0,
    ...over,
  };
}

export function aLease(over: Partial<Lease> = {}): Lease {
  return {
    ...untouchedLease,
    instanceId: "i1",
    installationId: "ours",
    sandboxId: "s1",
    tenantId: TENANT,
    provider: "fake",
    generation: 1,
    fence: 1,
    phase: "live",
    secret: "secret",
    reservation: { memoryBytes: 0, diskBytes: 0 },
    createdAt: NOW - 5_000,
    notAfter: NOW + 55_000,
    startupDeadlineAt: NOW + 55_000,
    ...over,
  };
}

/** One that runs, and was used a second ago. */
export function aLiveLease(over: Partial<Lease> = {}): Lease {
  const admittedAt = NOW - 4_000;
  return aLease({ createSentAt: NOW - 5_000, admittedAt, idleCheckAt: NOW + 1_799_000, ...over });
}

export function aHolding(sandbox: Partial<SandboxRow>, lease?: Lease, debts: readonly Lease[] = []): Holding {
  return { sandboxId: "s1", sandbox: aSandbox(sandbox), lease, debts, version: 7, readAt: NOW };
}

/** Instances of an id that has no sandbox. */
export function anOrphanage(lease: Lease | undefined, debts: readonly Lease[] = []): Ledger {
  return { sandboxId: "s1", sandbox: undefined, lease, debts, version: 7, readAt: NOW };
}

export function aFoundInstance(
  id: string,
  over: Partial<Omit<FoundInstance, "ref">> & { ref?: Partial<FoundInstance["ref"]> } = {},
): FoundInstance {
  const { ref, ...rest } = over;
  return {
    kind: "instance",
    ref: { installationId: "ours", sandboxId: "s1", instanceId: id, generation: 1, ...ref },
    createdAt: NOW - 1_000,
    lifetimeSeconds: 1_800,
    fence: 1,
    legacy: false,
    ...rest,
  };
}

export function aFoundDisk(sandboxId: string): FoundDisk {
  return { kind: "disk", ref: { installationId: "ours", sandboxId }, createdAt: null };
}
