import { closeSync, openSync, readdirSync, readlinkSync, readSync } from "node:fs";
import { basename } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { HoldfastError } from "@holdfast/protocol";
import { isCode } from "./atomic-file.ts";
import { isOurUser } from "./host-user.ts";
import { inside } from "./inside.ts";

/** A process of the host, trusted only together with its start time: pids are used again. */
export interface HostProcess {
  readonly pid: number;
  readonly parentPid: number;
  /** In clock ticks since the host's boot. */
  readonly startTime: string;
  readonly uid: number;
  /** Empty for a moment while the process goes from one program to another (`exec`). */
  readonly argv: readonly string[];
  /** Its pids in the nested namespaces, ours first. */
  readonly pids: readonly number[];
}

/** The programs between the server and the keeper; each carries the instance's name as an argument. */
const WRAPPERS = new Set(["sh", "unshare", "setpriv", "systemd-run", "pasta", "passt", "bwrap"]);

/**
 * A launcher goes through half a dozen programs and has no arguments in between. A look that meets such a process is
 * taken again until it has some, this often at most: a hundred times what it takes on a busy machine.
 */
const EXEC_LOOKS = 100;

/**
 * Those that had none after all these looks, with their start times. One that is over and cannot leave, because
 * something of its namespace is frozen or waits for a disk, may stay so for days: it is waited for once, not in each look.
 */
const neverHad = new Map<number, string>();

/** Every process of the host whose arguments have this name, keeper and wrappers alike. */
export function findByName(name: string): Promise<HostProcess[]> {
  return scan(
    (argv) => argv.includes(name),
    (found) => isOurUser(found.uid) && (isKeeper(found) || isWrapper(found)),
  );
}

/** Every keeper on this host that a server of this user may have started. */
export function findKeepers(): Promise<HostProcess[]> {
  return scan(
    (argv) => argv[0] === inside.loader,
    (found) => isOurUser(found.uid) && isKeeper(found),
  );
}

/**
 * The first process of a namespace with our command line. A program inside may call itself what it likes, but it
 * cannot be the first: it has no right to make a namespace.
 */
export function isKeeper(found: HostProcess): boolean {
  return found.argv[0] === inside.loader && isFirstOfNamespace(found);
}

/** What is true of this pid now; `undefined` if it is gone or a zombie. */
export function readProcess(pid: number): HostProcess | undefined {
  const argv = readArguments(pid);
  const stat = readStat(pid);
  const status = readProcFile(pid, "status");
  if (argv === undefined || stat === undefined || status === undefined) return undefined;
  const { startTime } = stat;
  const [[parentPid = 0], [uid = -1], pids] = [
    numbers(status, "PPid"),
    numbers(status, "Uid"),
    numbers(status, "NSpid"),
  ];
  return { pid, parentPid, startTime, uid, argv, pids };
}

/** Started by its first thread, as all is that our own programs start. Empty where the kernel does not tell. */
export function childrenOf(pid: number): number[] {
  const text = readProcFile(pid, "children", pid) ?? "";
  return text.split(" ").filter(Boolean).map(Number);
}

/** A process of a namespace, and whether every thread of it stands still. */
export interface InNamespace extends Pick<HostProcess, "pid" | "startTime" | "pids"> {
  readonly isStopped: boolean;
}

/** The first process of a namespace, and all others in it that are not over. */
export function readNamespace(first: number): InNamespace[] {
  const name = namespaceOf(first);
  return listPids().flatMap((pid) => {
    if (name === undefined || namespaceOf(pid) !== name) return [];
    const stat = readStat(pid);
    const status = readProcFile(pid, "status");
    return stat === undefined || status === undefined
      ? []
      : [{ pid, startTime: stat.startTime, isStopped: isStopped(pid), pids: numbers(status, "NSpid") }];
  });
}

/** A process counts as stopped from its first thread on; the others get there a moment later. */
function isStopped(pid: number): boolean {
  const threads = orGone(() => readdirSync(`/proc/${pid}/task`)) ?? [];
  return threads.every((thread) => /^[TtZX]$/.test(readStat(Number(thread), pid)?.state ?? "X"));
}

function namespaceOf(pid: number): string | undefined {
  try {
    return readlinkSync(`/proc/${pid}/ns/pid`);
  } catch (error) {
    // One of another user is none of ours.
    if (isCode(error, "ENOENT", "ESRCH", "EACCES", "EPERM")) return undefined;
    throw error;
  }
}

export function isAlive(known: Pick<HostProcess, "pid" | "startTime">): boolean {
  return readStat(known.pid)?.startTime === known.startTime;
}

/** One of our programs outside the sandbox. */
export function isWrapper(found: HostProcess): boolean {
  const program = basename(found.argv[0] ?? "").replace(/\.avx2$/, "");
  return WRAPPERS.has(program) && isOutside(found);
}

/** In our own namespace, or the first of one that pasta or bubblewrap made: what a sandbox starts is neither. */
function isOutside(found: HostProcess): boolean {
  return found.pids.length === 1 || isFirstOfNamespace(found);
}

function isFirstOfNamespace(found: HostProcess): boolean {
  return found.pids.length > 1 && found.pids.at(-1) === 1;
}

async function scan(
  wanted: (argv: readonly string[]) => boolean,
  accepted: (found: HostProcess) => boolean,
): Promise<HostProcess[]> {
  const found: HostProcess[] = [];
  let pids = listPids();
  for (let look = 0; look < EXEC_LOOKS && pids.length > 0; look++) {
    if (look > 0) await sleep(1);
    const inExec: number[] = [];
    for (const pid of pids) {
      const argv = readArguments(pid);
      if (argv === undefined || (argv.length > 0 && !wanted(argv))) continue;
      const process = readProcess(pid);
      if (process === undefined) continue;
      if (process.argv.length === 0 && isOutside(process)) {
        if (neverHad.get(pid) !== process.startTime) inExec.push(pid);
      } else if (wanted(process.argv) && accepted(process)) found.push(process);
    }
    pids = inExec;
  }
  for (const pid of pids) neverHad.set(pid, readStat(pid)?.startTime ?? "");
  return found;
}

/** Without this nothing can be said of any instance. */
function listPids(): number[] {
  try {
    return readdirSync("/proc")
      .filter((entry) => /^\d+$/.test(entry))
      .map(Number);
  } catch (cause) {
    throw new HoldfastError("provider_unavailable", "cannot list the processes of this machine", {
      hint: "Look whether /proc is mounted and whether the server has file descriptors left.",
      cause,
    });
  }
}

/** `undefined` if it is gone, a zombie, or one of the kernel's own threads; empty in the middle of an `exec`. */
function readArguments(pid: number): string[] | undefined {
  const text = readProcFile(pid, "cmdline");
  if (text === undefined) return undefined;
  if (text !== "") return text.split("\0").slice(0, -1);
  return readStat(pid) === undefined ? undefined : [];
}

/** The kernel's flag for its own threads. */
const PF_KTHREAD = 0x0020_0000;

function readStat(pid: number, process?: number): { startTime: string; state: string } | undefined {
  const text = readProcFile(pid, "stat", process);
  if (text === undefined) return undefined;
  // The program's name comes before, in brackets, and may contain anything.
  const fields = text.slice(text.lastIndexOf(")") + 2).split(" ");
  const [state = "", flags = "0", startTime = ""] = [fields[0], fields[6], fields[19]];
  const isGone = state === "Z" || state === "X";
  return isGone || (Number(flags) & PF_KTHREAD) !== 0 ? undefined : { startTime, state };
}

function numbers(status: string, field: string): number[] {
  const line = new RegExp(`^${field}:\\s+(.*)$`, "m").exec(status)?.[1] ?? "";
  return line.split(/\s+/).map(Number);
}

/** Only the beginning: a process inside can make its arguments as long as its memory, and so our reading of them. */
function readProcFile(pid: number, file: string, process?: number): string | undefined {
  const place = process === undefined ? pid : `${process}/task/${pid}`;
  return orGone(() => {
    const fd = openSync(`/proc/${place}/${file}`, "r");
    try {
      return readBeginning(fd);
    } finally {
      closeSync(fd);
    }
  });
}

/** Many times what our own programs have; one buffer for all, because every look reads some hundred files. */
const beginning = Buffer.allocUnsafe(64 * 1024);

function readBeginning(fd: number): string {
  let size = 0;
  while (size < beginning.length) {
    const read = readSync(fd, beginning, size, beginning.length - size, null);
    if (read === 0) break;
    size += read;
  }
  return beginning.toString("utf8", 0, size);
}

/** A process that ends while we look is gone; any other failure to look is an error. */
function orGone<T>(look: () => T): T | undefined {
  try {
    return look();
  } catch (error) {
    if (isCode(error, "ENOENT", "ESRCH")) return undefined;
    throw error;
  }
}
