import { closeSync, openSync, readdirSync, readFileSync, readSync } from "node:fs";
import { constants } from "node:os";
import { pidfdOpen, pidfdSignal } from "./libc.ts";

/** A process that cannot be confused with a later one of the same number. */
export interface ProcessRef {
  readonly pid: number;
  /** Clock ticks since boot, field 22 of /proc/PID/stat. */
  readonly startTime: number;
}

export interface ProcessEntry extends ProcessRef {
  readonly parent: number;
  readonly group: number;
  readonly session: number;
  readonly state: string;
  readonly name: string;
  /** CPU that it has used, all threads. */
  readonly cpuMs: number;
  /** CPU of its children that have ended and that it has waited for, with theirs. */
  readonly waitedCpuMs: number;
}

// The kernel counts CPU for us in hundredths of a second on every architecture.
const TICK_MS = 10;

/** Every process that can be seen and is not a zombie. */
export function listProcesses(): ProcessEntry[] {
  const entries: ProcessEntry[] = [];
  for (const name of readdirSync("/proc")) {
    const pid = Number(name);
    if (!Number.isInteger(pid)) continue;
    const entry = lookAt(pid);
    if (entry !== undefined && entry.state !== "Z" && entry.state !== "X") entries.push(entry);
  }
  return entries;
}

/** One process, a zombie included; `undefined` if there is none of that number. */
export function lookAt(pid: number): ProcessEntry | undefined {
  const text = readProc(`/proc/${pid}/stat`);
  // The name is in brackets and may itself contain brackets and spaces: what follows its last bracket is regular.
  const open = text.indexOf("(");
  const close = text.lastIndexOf(")");
  if (open < 0 || close < 0) return undefined;
  const fields = text.slice(close + 2).split(" ");
  return {
    pid,
    name: text.slice(open + 1, close),
    state: fields[0] ?? "?",
    parent: Number(fields[1]),
    group: Number(fields[2]),
    session: Number(fields[3]),
    cpuMs: (Number(fields[11]) + Number(fields[12])) * TICK_MS,
    waitedCpuMs: (Number(fields[13]) + Number(fields[14])) * TICK_MS,
    startTime: Number(fields[19]),
  };
}

export function isAlive(ref: ProcessRef): boolean {
  const entry = lookAt(ref.pid);
  return entry !== undefined && entry.startTime === ref.startTime && entry.state !== "Z";
}

/** Whether the process was started with exactly this `NAME=value` in its environment, as far as it lets us see. */
export function hasEnvironmentEntry(pid: number, entry: string): boolean {
  return mentionsInEnvironment(pid, `${entry}\0`);
}

/** What its environment had under this name when it was started, as far as it lets us see. */
export function environmentValue(pid: number, name: string): string | undefined {
  const start = `\0${name}=`;
  const text = `\0${readProc(`/proc/${pid}/environ`)}`;
  const at = text.indexOf(start);
  return at < 0 ? undefined : text.slice(at + start.length).split("\0", 1)[0];
}

/** Whether any of its environment begins with this. */
export function mentionsInEnvironment(pid: number, beginning: string): boolean {
  return `\0${readProc(`/proc/${pid}/environ`)}`.includes(`\0${beginning}`);
}

/** For people: the command line, or the kernel's short name for a program that hides it. */
export function describe(entry: ProcessEntry): string {
  const words = readProc(`/proc/${entry.pid}/cmdline`).replaceAll("\0", " ").trim();
  return (words === "" ? entry.name : words).slice(0, 200);
}

export type SignalName = keyof typeof constants.signals;

/**
 * Signals this process and no other: the handle is taken first and the start time compared after, so that a number
 * that was used again in between is not hit. False if the process is gone or not ours to signal.
 */
export function signalExactly(ref: ProcessRef, signal: SignalName): boolean {
  const pidfd = pidfdOpen(ref.pid);
  if (pidfd < 0) return false;
  try {
    return lookAt(ref.pid)?.startTime === ref.startTime && pidfdSignal(pidfd, constants.signals[signal]);
  } finally {
    closeSync(pidfd);
  }
}

const scratch = Buffer.allocUnsafe(4096);

/** Empty for a process that is gone or hides it. Small files are read in one call, without the cost of a stat. */
function readProc(path: string): string {
  let fd: number | undefined;
  try {
    fd = openSync(path, "r");
    const count = readSync(fd, scratch, 0, scratch.length, null);
    return count < scratch.length ? scratch.toString("latin1", 0, count) : readFileSync(path, "latin1");
  } catch {
    return "";
  } finally {
    if (fd !== undefined) closeSync(fd);
  }
}
