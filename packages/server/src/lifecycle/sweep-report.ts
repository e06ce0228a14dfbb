import type { Found, FoundInstance, Lease, SweepAction, SweepPlan } from "@holdfast/core";
import type { SweepReport } from "@holdfast/protocol";

export type ProviderReport = SweepReport["providers"][number];

/** What a pass found and did, or would do, for people. */
export function reportOf(
  provider: string,
  { found, plan, leases }: { found: readonly Found[]; plan: SweepPlan; leases: readonly Lease[] },
): ProviderReport {
  const known = new Set(leases.filter(({ phase }) => phase !== "gone").map(({ instanceId }) => instanceId));
  const instances = found.filter((one): one is FoundInstance => one.kind === "instance");
  return {
    provider,
    found: { instances: instances.length, disks: found.length - instances.length },
    adopted: instances.filter(({ ref }) => known.has(ref.instanceId)).length,
    actions: [...plan.actions.map(shown), ...plan.spared.map(spared)],
    foreign: plan.foreign,
    ...(plan.heldBack.length > 0 && {
      braked: `${plan.heldBack.length} instances would be stopped at once: held back until the next pass finds the same`,
    }),
  };
}

function shown(action: SweepAction): ProviderReport["actions"][number] {
  switch (action.do) {
    case "reopen":
      return {
        do: "stop",
        sandboxId: action.lease.sandboxId,
        instance: action.lease.instanceId,
        because: "it was believed to be gone",
      };
    case "record":
      return {
        do: "stop",
        sandboxId: action.found.ref.sandboxId,
        instance: action.found.ref.instanceId,
        because: action.because,
        at: new Date(action.at).toISOString(),
      };
    case "raise":
      return {
        do: "raise",
        sandboxId: action.sandboxId,
        instance: "",
        because: `generation ${action.generation} is in use`,
      };
    case "remove-disk":
    case "recover-disk":
    case "own-disk":
      return {
        do: action.do,
        sandboxId: action.found.ref.sandboxId,
        instance: "",
        because: becauseOfDisk[action.do],
      };
    default:
      return action satisfies never;
  }
}

const becauseOfDisk = {
  "remove-disk": "its sandbox was deleted",
  "recover-disk": "its sandbox is not known here, and somebody's work is on it",
  "own-disk": "its sandbox's row did not know of it",
} as const;

function spared({ found, because, until }: SweepPlan["spared"][number]): ProviderReport["actions"][number] {
  return {
    do: "spare",
    sandboxId: found.ref.sandboxId,
    instance: found.kind === "instance" ? found.ref.instanceId : "",
    because,
    ...(until !== null && { at: new Date(until).toISOString() }),
  };
}
