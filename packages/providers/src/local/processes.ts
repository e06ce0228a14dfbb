import { readdirSync, readFileSync, readlinkSync } from "node:fs";
import { basename } from "node:path";
import { isCode } from "./atomic-file.ts";
import { inside } from "./inside.ts";

/** A process of the host, trusted only together with its start time: pids are used again. */
export interface HostProcess {
  readonly pid: number;
  /** In clock ticks since the host's boot. */
  readonly startTime: string;
  readonly uid: number;
  readonly argv: readonly string[];
  /** Its pids in the nested namespaces, ours first. */
  readonly pids: readonly number[];
}

/** The programs between the server and the keeper; each carries the instance's name as an argument. */
const WRAPPERS = new Set(["sh", "unshare", "setpriv", "systemd-run", "pasta", "passt", "bwrap"]);

/** Every process of the host whose arguments have this name, keeper and wrappers alike. */
export function findByName(name: string): HostProcess[] {
  return scan((argv) => argv.includes(name)).filter((found) => isKeeper(found) || isWrapper(found));
}

/** Every keeper on this host, whoever started it. */
export function findKeepers(): HostProcess[] {
  return scan((argv) => argv[0] === inside.loader).filter(isKeeper);
}

/**
 * The first process of a namespace with our command line. A program inside may call itself what it likes, but it
 * cannot be the first: it has no right to make a namespace.
 */
export function isKeeper(found: HostProcess): boolean {
  return found.argv[0] === inside.loader && isFirstOfNamespace(found);
}

/** One of our programs outside the sandbox: seen in our own namespace, or the first of one that pasta or bwrap made. */
function isWrapper(found: HostProcess): boolean {
  const program = basename(found.argv[0] ?? "").replace(/\.avx2$/, "");
  return WRAPPERS.has(program) && (found.pids.length === 1 || isFirstOfNamespace(found));
}

function isFirstOfNamespace(found: HostProcess): boolean {
  return found.pids.length > 1 && found.pids.at(-1) === 1;
}

/** What is true of this pid now; `undefined` if it is gone or a zombie. */
export function readProcess(pid: number): HostProcess | undefined {
  return lookAt(pid, () => true);
}

export function isAlive(known: Pick<HostProcess, "pid" | "startTime">): boolean {
  return readProcess(known.pid)?.startTime === known.startTime;
}

/** The environment that a process was started with, which only its owner and root may see. */
export function readVariable(pid: number, name: string): string | undefined {
  const entries = readProcFile(pid, "environ")?.split("\0") ?? [];
  return entries.find((entry) => entry.startsWith(`${name}=`))?.slice(name.length + 1);
}

/** The number of a process's pid namespace: equal for exactly the processes of one sandbox. */
export function pidNamespaceOf(pid: number): string | undefined {
  return orGone(() => readlinkSync(`/proc/${pid}/ns/pid`));
}

function scan(wanted: (argv: readonly string[]) => boolean): HostProcess[] {
  const found: HostProcess[] = [];
  for (const entry of readdirSync("/proc")) {
    const process = /^\d+$/.test(entry) ? lookAt(Number(entry), wanted) : undefined;
    if (process !== undefined) found.push(process);
  }
  return found;
}

function lookAt(pid: number, wanted: (argv: readonly string[]) => boolean): HostProcess | undefined {
  const argv = readArguments(pid);
  if (argv === undefined || !wanted(argv)) return undefined;
  const status = readProcFile(pid, "status");
  const stat = readStat(pid);
  if (status === undefined || stat === undefined || stat.isZombie) return undefined;
  const { startTime } = stat;
  return { pid, startTime, uid: numbers(status, "Uid")[0] ?? -1, argv, pids: numbers(status, "NSpid") };
}

/**
 * A process has no arguments while it is between two programs (`exec`), and a launcher does that half a dozen times.
 * It is looked at again, this often and with this pause; much longer than a moment on a very busy machine.
 */
const EXEC_LOOKS = 40;
const EXEC_PAUSE_MS = 0.5;

function readArguments(pid: number): string[] | undefined {
  for (let look = 0; look < EXEC_LOOKS; look++) {
    const text = readProcFile(pid, "cmdline");
    if (text === undefined) return undefined;
    if (text !== "") return text.split("\0").slice(0, -1);
    const stat = readStat(pid);
    if (stat === undefined || stat.isZombie || stat.isKernelThread) return undefined;
    Bun.sleepSync(EXEC_PAUSE_MS);
  }
  return undefined;
}

/** The kernel's flag for its own threads, which never have arguments. */
const PF_KTHREAD = 0x0020_0000;

function readStat(
  pid: number,
): { startTime: string; isZombie: boolean; isKernelThread: boolean } | undefined {
  const text = readProcFile(pid, "stat");
  if (text === undefined) return undefined;
  // The program's name comes before, in brackets, and may contain anything.
  const fields = text.slice(text.lastIndexOf(")") + 2).split(" ");
  const [state = "", flags = "0", startTime = ""] = [fields[0], fields[6], fields[19]];
  return {
    startTime,
    isZombie: state === "Z" || state === "X",
    isKernelThread: (Number(flags) & PF_KTHREAD) !== 0,
  };
}

function numbers(status: string, field: string): number[] {
  const line = new RegExp(`^${field}:\\s+(.*)$`, "m").exec(status)?.[1] ?? "";
  return line.split(/\s+/).map(Number);
}

function readProcFile(pid: number, file: string): string | undefined {
  return orGone(() => readFileSync(`/proc/${pid}/${file}`, "utf8"));
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
