import type { AdmissionRules, Holding, NewLease } from "@holdfast/core";
import type { Commit } from "../book.ts";
import type { Scene } from "./scene.ts";

/** S8: Sum of reservations of non-terminal instances <= capacity per host and per tenant. */
export function capacityHolds({ op, after }: Commit, args: readonly unknown[], { judge, book }: Scene): void {
  const rules = rulesOf(op, args);
  if (rules === undefined || after.lease === undefined) return;
  if (op !== "give" && after.lease.phase !== "reserved") return;
  const { provider, tenantId } = after.lease;
  const onHost = book.standing(provider);
  const slots = Math.min(
    rules.slots ?? Number.POSITIVE_INFINITY,
    rules.measured.slots ?? Number.POSITIVE_INFINITY,
  );
  judge.demand(
    onHost.length <= slots,
    "S8",
    () => `${onHost.length} instances for ${slots} slots on ${provider}`,
  );
  const memory = onHost.reduce((sum, { reservation }) => sum + reservation.memoryBytes, 0);
  const most = rules.measured.memoryBytes ?? Number.POSITIVE_INFINITY;
  judge.demand(memory <= most, "S8", () => `${memory} bytes of memory promised, ${most} are there`);
  const blocking = book.standing().filter((lease) => lease.tenantId === tenantId && lease.phase !== "debt");
  const quota = rules.tenantQuota ?? Number.POSITIVE_INFINITY;
  judge.demand(blocking.length <= quota, "S8", () => `${blocking.length} instances for a quota of ${quota}`);
}

function rulesOf(op: Commit["op"], args: readonly unknown[]): AdmissionRules | undefined {
  if (op === "reserve") return (args as [Holding, NewLease, AdmissionRules])[2];
  if (op === "give") return (args as [unknown, unknown, { rules: AdmissionRules }])[2].rules;
  if (op === "insertSandbox") return (args as [unknown, { rules?: AdmissionRules }])[1].rules;
  return undefined;
}
