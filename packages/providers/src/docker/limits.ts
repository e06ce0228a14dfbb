import { HoldfastError, type Limits, type LimitsReport } from "@holdfast/protocol";
import type { Info } from "./engine-types.ts";

export interface LimitsPlan {
  readonly report: LimitsReport;
  /** For the container's HostConfig. */
  readonly settings: Readonly<Record<string, number>>;
}

/** A fork bomb must not take the host along, also where nobody thought of a limit. */
const DEFAULT_PIDS = 4096;
/** Threads of the keeper, which count too: the user's number is for the user's own. */
const OWN_PIDS = 64;

/** Decides; changes nothing. Refuses where limits are required and cannot be had. */
export function planLimits(limits: Limits | undefined, info: Info): LimitsPlan {
  const problem = problemWith(limits, info);
  if (problem !== undefined) return withoutLimits(limits, problem);
  const memory = limits?.memoryMiB === undefined ? undefined : limits.memoryMiB * 1024 * 1024;
  return {
    report: { state: "enforced", detail: `${describe(limits)}, by ${enforcer(info)}` },
    settings: {
      PidsLimit: (limits?.pids ?? DEFAULT_PIDS) + OWN_PIDS,
      // Memory and swap together: a sandbox that has used up its memory does not go on in the host's swap.
      ...(memory !== undefined && { Memory: memory, MemorySwap: memory }),
      ...(limits?.cpus !== undefined && { NanoCpus: Math.ceil(limits.cpus * 1e9) }),
    },
  };
}

/** Whether this daemon can enforce all that may be asked for; if not, what is missing. */
export function canLimit(info: Info): { enforced: boolean; detail: string } {
  const problem = problemWith({ cpus: 1, memoryMiB: 64 }, info);
  return { enforced: problem === undefined, detail: problem ?? enforcer(info) };
}

function enforcer({ CgroupVersion }: Info): string {
  return `Docker with control groups v${CgroupVersion ?? "1"}`;
}

/** What the daemon cannot enforce; `undefined` if there is nothing. */
function problemWith(limits: Limits | undefined, info: Info): string | undefined {
  if (!info.PidsLimit) return "this Docker cannot limit processes";
  if (limits?.memoryMiB !== undefined && !info.MemoryLimit) return "this Docker cannot limit memory";
  if (limits?.cpus !== undefined && !info.CpuCfsQuota) return "this Docker cannot limit cpus";
  return undefined;
}

function withoutLimits(limits: Limits | undefined, reason: string): LimitsPlan {
  if (limits?.required) {
    throw new HoldfastError("unsupported", `limits cannot be enforced: ${reason}`, {
      hint: "Leave out limits.required to run without them, or let `docker info` say what is missing.",
      started: "no",
    });
  }
  return { report: { state: "unavailable", detail: reason }, settings: {} };
}

function describe(limits: Limits | undefined): string {
  return [
    `pids ${limits?.pids ?? `${DEFAULT_PIDS} (default)`}`,
    ...(limits?.memoryMiB === undefined ? [] : [`memory ${limits.memoryMiB} MiB`]),
    ...(limits?.cpus === undefined ? [] : [`cpus ${limits.cpus}`]),
  ].join(", ");
}
