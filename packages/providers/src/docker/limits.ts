import { HoldfastError, type Limits, type LimitsReport } from "@holdfast/protocol";
import { type Info, isPodman } from "./engine-types.ts";

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
  const disk = limits?.diskMiB === undefined ? undefined : canLimitDisk(info);
  if (disk !== undefined && limits?.required) throw refused(disk.detail);
  const memory = limits?.memoryMiB === undefined ? undefined : limits.memoryMiB * 1024 * 1024;
  return {
    report: {
      state: disk === undefined ? "enforced" : "partial",
      detail: `${describe(limits)}, by ${enforcer(info)}${disk === undefined ? "" : `; not the disk: ${disk.detail}`}`,
    },
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

/**
 * Docker can give a layer a size, on some file systems; but what a sandbox writes is in volumes, to which none but XFS
 * with project quotas can give one. A limit that holds for a part is none.
 */
export function canLimitDisk(info: Info): { enforced: false; detail: string } {
  const below = info.DriverStatus?.find(([name]) => name === "Backing Filesystem")?.[1] ?? "unknown";
  const storage = `${info.Driver} on ${below}`;
  return {
    enforced: false,
    detail: `${engineOf(info)} cannot limit volumes (its storage here is ${storage})`,
  };
}

function enforcer(info: Info): string {
  return `${engineOf(info)} with control groups v${info.CgroupVersion ?? "1"}`;
}

function engineOf(info: Info): string {
  return isPodman(info) ? "Podman" : "Docker";
}

/** What the daemon cannot enforce; `undefined` if there is nothing. */
function problemWith(limits: Limits | undefined, info: Info): string | undefined {
  if (info.Rootless && info.CgroupVersion === "1") {
    return "a rootless Podman cannot limit anything with control groups v1";
  }
  if (!info.PidsLimit) return "this Docker cannot limit processes";
  if (limits?.memoryMiB !== undefined && !info.MemoryLimit) return "this Docker cannot limit memory";
  if (limits?.cpus !== undefined && !info.CpuCfsQuota) return "this Docker cannot limit cpus";
  return undefined;
}

function withoutLimits(limits: Limits | undefined, reason: string): LimitsPlan {
  if (limits?.required) throw refused(reason);
  return { report: { state: "unavailable", detail: reason }, settings: {} };
}

function refused(reason: string): HoldfastError {
  return new HoldfastError("unsupported", `limits cannot be enforced: ${reason}`, {
    hint: "Leave out limits.required to run without them, or let `docker info` say what is missing.",
    started: "no",
  });
}

function describe(limits: Limits | undefined): string {
  return [
    `pids ${limits?.pids ?? `${DEFAULT_PIDS} (default)`}`,
    ...(limits?.memoryMiB === undefined ? [] : [`memory ${limits.memoryMiB} MiB`]),
    ...(limits?.cpus === undefined ? [] : [`cpus ${limits.cpus}`]),
  ].join(", ");
}
