import { isSpare, type Lease, type SandboxRow } from "@holdfast/core";
import type { AdmitMessage } from "@holdfast/protocol";

/** What its keeper is told when it is admitted, and once more when it is given away. */
export function admissionOf(
  { policy, spec, tenantId }: SandboxRow,
  lease: Lease,
  { orphanLimitSeconds }: { orphanLimitSeconds: number },
): AdmitMessage {
  const { instanceId, generation, fence } = lease;
  const { lifetimeSeconds, maxLifetimeSeconds } = policy;
  return {
    ...{ instanceId, generation, fence, lifetimeSeconds, orphanLimitSeconds },
    maxLifetimeSeconds: maxLifetimeSeconds === null ? null : maxLifetimeSeconds + waitedSeconds(lease),
    spare: isSpare({ tenantId }),
    ...(spec.env !== undefined && { env: spec.env }),
  };
}

/** A keeper counts its age from its start, the rows from its admission: what was a spare is older than its sandbox. */
function waitedSeconds({ admittedAt, createdAt }: Lease): number {
  return admittedAt === null ? 0 : Math.max(0, admittedAt - createdAt) / 1000;
}
