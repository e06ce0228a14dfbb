import { writeFileSync } from "node:fs";
import { readFile, rmdir } from "node:fs/promises";
import { basename, join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { HoldfastError, type Limits, type LimitsReport } from "@holdfast/protocol";
import { isCode } from "./atomic-file.ts";
import type { CgroupHost } from "./cgroup-host.ts";
import type { Holder } from "./holder.ts";
import type { Layout } from "./layout.ts";
import { type NamedBy, nameOf } from "./name.ts";
import { give, makeDir } from "./owned-files.ts";
import { placeOf } from "./place.ts";
import { readProcess } from "./processes.ts";
import { programPath } from "./programs.ts";
import { signalProcess } from "./signal-process.ts";

/** How the limits of one instance are to be enforced. */
export interface LimitsPlan {
  readonly report: LimitsReport;
  /** To be made, filled, and removed with the instance. */
  readonly groups: readonly Group[];
  /** Those of them that the launcher joins before anything else. */
  readonly joins: readonly string[];
  /** The one that it is started in, where the kernel can do that: to join one takes a hundred times as long there. */
  readonly startIn: string | undefined;
  /** A command that starts the rest within the limits, where groups cannot be made directly. */
  readonly prefix: readonly string[];
  /** Where the memory controller's counters are. */
  readonly memoryDir: string | undefined;
}

interface Group {
  readonly dir: string;
  readonly settings: Readonly<Record<string, string>>;
}

/** A fork bomb must not take the host along, also where nobody thought of a limit. */
const DEFAULT_PIDS = 4096;
/** Threads of the keeper, bubblewrap and pasta, which count too: the user's number is for the user's own. */
const OWN_PIDS = 64;
const CPU_PERIOD_US = 100_000;

/** Of those, so many are for what the keeper needs when the work has taken all of its own. */
const KEEPER_RESERVE = 48;

/** Where the work itself must stop, so that its keeper can go on. */
export function maxProcesses(limits: Limits | undefined): number {
  return (limits?.pids ?? DEFAULT_PIDS) + OWN_PIDS - KEEPER_RESERVE;
}

/** A sandbox's files are in a folder, and a folder has no size. */
export const NO_DISK_LIMIT = "the local provider keeps files in folders, which cannot be limited";

/** Decides; changes nothing. Refuses where limits are required and cannot be had. */
export function planLimits(name: string, limits: Limits | undefined, host: CgroupHost): LimitsPlan {
  const wanted = { ...limits, pids: (limits?.pids ?? DEFAULT_PIDS) + OWN_PIDS };
  const problem = problemWith(wanted, host);
  if (problem !== undefined) return withoutLimits(limits, problem);
  const report = reportOf(limits, host);
  switch (host.kind) {
    case "v1":
      return { report, prefix: [], startIn: undefined, ...groupsV1(name, wanted, host.parents) };
    case "v2":
      return { report, prefix: [], joins: [], ...groupV2(name, wanted, host.parent) };
    case "systemd":
      return { ...noGroups, report, prefix: scopeCommand(name, wanted) };
    case "unavailable":
      return withoutLimits(limits, host.detail);
    default:
      return host satisfies never;
  }
}

/** Names of groups are common to the whole machine, so they say which data dir the instance is in. */
export function groupName(layout: Layout, named: NamedBy): string {
  return `${nameOf(named)}:${placeOf(layout.dataDir) ?? "nowhere"}`;
}

/** The groups of whatever holds this name: as its directory lists them, and where they would be. */
export function groupsOf(
  holder: Holder,
  options: { layout: Layout; named: NamedBy; host: CgroupHost },
): string[] {
  const { layout, named, host } = options;
  const own = groupName(layout, named);
  const identity = holder.kind === "known" ? holder.identity : undefined;
  // Those of the release before had the instance's name alone.
  const isOlder = holder.kind !== "nobody" && (identity?.bootId ?? null) === null;
  const names = isOlder ? [own, nameOf(named)] : [own];
  // A list that was copied with its data dir names groups of the original: they are not ours to remove.
  const listed = (identity?.cgroups ?? []).filter((dir) => names.includes(basename(dir)));
  return [...new Set([...listed, ...names.flatMap((name) => groupDirs(name, host))])];
}

function groupDirs(name: string, host: CgroupHost): string[] {
  if (host.kind === "v1") return Object.values(host.parents).map((parent) => join(parent, name));
  return host.kind === "v2" ? [join(host.parent, name)] : [];
}

/** `uid`: who the launcher is, which joins them. May be called twice. */
export function makeGroups({ groups, joins }: LimitsPlan, uid: number): void {
  for (const { dir, settings } of groups) {
    makeDir(dir, { mode: 0o755 });
    for (const [file, value] of Object.entries(settings)) writeSetting(join(dir, file), value);
  }
  for (const dir of joins) give(joinFile(dir), { mode: 0o644, uid });
}

/**
 * A thread moves itself by this file of cgroup v1 without a lock on all processes of the machine, which would take the
 * kernel some 10 ms. A launcher has one thread.
 */
export function joinFile(dir: string): string {
  return join(dir, "tasks");
}

/** Ends whatever is still in the groups and removes them. May be called twice. */
export async function removeGroups(dirs: readonly string[], signal: AbortSignal): Promise<void> {
  for (const dir of dirs) {
    for (let pauseMs = 1; !(await removeGroup(dir)); pauseMs = Math.min(pauseMs * 2, 50)) {
      await killMembers(dir);
      await sleep(pauseMs, undefined, { signal });
    }
  }
}

/** `memory.memsw` and `memory.swap.max` exist only where the kernel accounts for swap; then they count. */
function writeSetting(path: string, value: string): void {
  try {
    writeFileSync(path, value, { flag: "r+" });
  } catch (error) {
    const optional = path.endsWith("memsw.limit_in_bytes") || path.endsWith("memory.swap.max");
    if (!(optional && isCode(error, "ENOENT"))) throw error;
  }
}

function problemWith(wanted: Limits, host: CgroupHost): string | undefined {
  if (host.kind === "unavailable") return host.detail;
  if (host.kind !== "v1") return undefined;
  if (host.parents.pids === undefined) return "the pids controller cannot be used";
  if (wanted.memoryMiB !== undefined && host.parents.memory === undefined) {
    return "the memory controller cannot be used";
  }
  if (wanted.cpus !== undefined && host.parents.cpu === undefined) return "the cpu controller cannot be used";
  return undefined;
}

function withoutLimits(limits: Limits | undefined, reason: string): LimitsPlan {
  if (limits?.required) throw refused(reason);
  return { ...noGroups, report: { state: "unavailable", detail: reason } };
}

const noGroups = { groups: [], joins: [], startIn: undefined, prefix: [], memoryDir: undefined };

function refused(reason: string): HoldfastError {
  return new HoldfastError("unsupported", `limits cannot be enforced on this machine: ${reason}`, {
    hint: 'Leave out limits.required to run without them, or let "holdfast doctor" say what is missing.',
    started: "no",
  });
}

function reportOf(limits: Limits | undefined, host: CgroupHost): LimitsReport {
  const detail = `${describe(limits)}, by ${host.detail}`;
  if (limits?.diskMiB === undefined) return { state: "enforced", detail };
  if (limits.required) throw refused(NO_DISK_LIMIT);
  return { state: "partial", detail: `${detail}; not the disk: ${NO_DISK_LIMIT}` };
}

function describe(limits: Limits | undefined): string {
  return [
    `pids ${limits?.pids ?? `${DEFAULT_PIDS} (default)`}`,
    ...(limits?.memoryMiB === undefined ? [] : [`memory ${limits.memoryMiB} MiB`]),
    ...(limits?.cpus === undefined ? [] : [`cpus ${limits.cpus}`]),
  ].join(", ");
}

type Parents = Extract<CgroupHost, { kind: "v1" }>["parents"];
type Wanted = Limits & { pids: number };

function groupsV1(
  name: string,
  wanted: Wanted,
  parents: Parents,
): Pick<LimitsPlan, "groups" | "joins" | "memoryDir"> {
  const settings: Record<keyof Parents, Record<string, string>> = {
    pids: { "pids.max": String(wanted.pids) },
    memory:
      wanted.memoryMiB === undefined
        ? {}
        : {
            "memory.limit_in_bytes": bytes(wanted.memoryMiB),
            "memory.memsw.limit_in_bytes": bytes(wanted.memoryMiB),
          },
    cpu:
      wanted.cpus === undefined
        ? {}
        : {
            "cpu.cfs_period_us": String(CPU_PERIOD_US),
            "cpu.cfs_quota_us": String(Math.ceil(wanted.cpus * CPU_PERIOD_US)),
          },
    systemd: {},
  };
  const groups = (Object.entries(parents) as [keyof Parents, string][]).map(([controller, parent]) => ({
    dir: join(parent, name),
    settings: settings[controller],
  }));
  const joins = groups.map(({ dir }) => dir);
  return { groups, joins, memoryDir: parents.memory && join(parents.memory, name) };
}

function groupV2(
  name: string,
  wanted: Wanted,
  parent: string,
): Pick<LimitsPlan, "groups" | "startIn" | "memoryDir"> {
  const dir = join(parent, name);
  const settings = {
    "pids.max": String(wanted.pids),
    ...(wanted.memoryMiB !== undefined && { "memory.max": bytes(wanted.memoryMiB), "memory.swap.max": "0" }),
    ...(wanted.cpus !== undefined && {
      "cpu.max": `${Math.ceil(wanted.cpus * CPU_PERIOD_US)} ${CPU_PERIOD_US}`,
    }),
  };
  return { groups: [{ dir, settings }], startIn: dir, memoryDir: dir };
}

function scopeCommand(name: string, wanted: Wanted): string[] {
  return [
    ...[programPath("systemd-run"), "--user", "--scope", "--quiet", "--collect", "--unit", name],
    ...["-p", `TasksMax=${wanted.pids}`],
    ...(wanted.memoryMiB === undefined
      ? []
      : ["-p", `MemoryMax=${wanted.memoryMiB}M`, "-p", "MemorySwapMax=0"]),
    ...(wanted.cpus === undefined ? [] : ["-p", `CPUQuota=${Math.ceil(wanted.cpus * 100)}%`]),
    "--",
  ];
}

function bytes(mebibytes: number): string {
  return String(mebibytes * 1024 * 1024);
}

/** Whether it is gone; a group with processes in it cannot be removed. */
async function removeGroup(dir: string): Promise<boolean> {
  try {
    await rmdir(dir);
    return true;
  } catch (error) {
    if (isCode(error, "ENOENT")) return true;
    if (isCode(error, "EBUSY", "ENOTEMPTY")) return false;
    throw error;
  }
}

async function killMembers(dir: string): Promise<void> {
  let members: string;
  try {
    members = await readFile(join(dir, "cgroup.procs"), "utf8");
  } catch (error) {
    if (isCode(error, "ENOENT", "ENODEV")) return;
    throw error;
  }
  for (const pid of members.split("\n").filter(Boolean)) {
    const member = readProcess(Number(pid));
    if (member !== undefined) signalProcess(member, "SIGKILL");
  }
}
