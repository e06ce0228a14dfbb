import { dlopen, ptr } from "bun:ffi";

/**
 * The few system calls that the runtime does not offer. The C library is found by its soname among what is already
 * loaded, so this also works in a root file system that has none of its own.
 */
const { symbols: libc } = dlopen("libc.so.6", {
  pipe2: { args: ["ptr", "i32"], returns: "i32" },
  memfd_create: { args: ["ptr", "u32"], returns: "i32" },
  lseek: { args: ["i32", "i64", "i32"], returns: "i64" },
  fcntl: { args: ["i32", "i32", "i64"], returns: "i32" },
  ioctl: { args: ["i32", "u64", "ptr"], returns: "i32" },
  poll: { args: ["ptr", "u64", "i32"], returns: "i32" },
  waitid: { args: ["i32", "u32", "ptr", "i32"], returns: "i32" },
  waitpid: { args: ["i32", "ptr", "i32"], returns: "i32" },
  prctl: { args: ["i32", "u64", "u64", "u64", "u64"], returns: "i32" },
  prlimit: { args: ["i32", "i32", "ptr", "ptr"], returns: "i32" },
  syscall: { args: ["i64", "i64", "i64", "i64", "i64"], returns: "i64" },
});

const O_CLOEXEC = 0o2000000;
const O_NONBLOCK = 0o4000;
// Alike on x86-64 and most others, but not on arm64.
const O_DIRECT = process.arch === "arm64" ? 0o200000 : 0o40000;
const F_GETFL = 3;
const F_SETFL = 4;
const F_SETPIPE_SZ = 1031;
const FIONREAD = 0x541b;
const MFD_CLOEXEC = 1;
const MFD_NOEXEC_SEAL = 8;
const SEEK_SET = 0;
const POLLIN = 1;
const POLLHUP = 16;
const WNOHANG = 1;
const WEXITED = 4;
const WNOWAIT = 0x1000000;
const P_PID = 1;
const CLD_EXITED = 1;
const RLIMIT_NPROC = 6;
const PR_SET_DUMPABLE = 4;
// The same numbers on every architecture that Bun runs on.
const SYS_PIDFD_SEND_SIGNAL = 424;
const SYS_PIDFD_OPEN = 434;

export interface Pipe {
  readonly readFd: number;
  readonly writeFd: number;
}

/**
 * A real pipe. The runtime's own "pipe" is a socket pair, and a program that opens /dev/stdout or /dev/stdin fails on
 * a socket with ENXIO.
 */
export function makePipe(): Pipe {
  const fds = new Int32Array(2);
  if (libc.pipe2(ptr(fds), O_CLOEXEC) !== 0) throw new Error("pipe2 failed: no file descriptors are left");
  return { readFd: fds[0] ?? -1, writeFd: fds[1] ?? -1 };
}

/**
 * A pipe that holds one piece: whoever has written one waits with the next until that is read. What the kernel does not
 * grant of it is no failure: then nobody waits.
 */
export function makeNarrowPipe(): Pipe {
  const fds = new Int32Array(2);
  if (libc.pipe2(ptr(fds), O_CLOEXEC | O_DIRECT) !== 0) return makePipe();
  const [readFd = -1, writeFd = -1] = fds;
  resizePipe(writeFd, 1);
  return { readFd, writeFd };
}

/** A file in memory alone, without a name that anybody could open. */
export function makeMemoryFile(): number {
  const name = ptr(Buffer.from("holdfast\0"));
  // A kernel may insist that such a file holds no program; one before 6.3 does not know that it can be said.
  const sealed = libc.memfd_create(name, MFD_CLOEXEC | MFD_NOEXEC_SEAL);
  const fd = sealed >= 0 ? sealed : libc.memfd_create(name, MFD_CLOEXEC);
  if (fd < 0) throw new Error("memfd_create failed: no file descriptors are left");
  return fd;
}

/** For everybody who has it from us: they share one place in the file. */
export function rewind(fd: number): void {
  libc.lseek(fd, 0, SEEK_SET);
}

/** Affects this end only: the two ends of a pipe are two open files. */
export function makeNonBlocking(fd: number): void {
  libc.fcntl(fd, F_SETFL, libc.fcntl(fd, F_GETFL, 0) | O_NONBLOCK);
}

/** Lets so much wait in a pipe, in whole pages; what the kernel does not grant is no failure. */
export function resizePipe(fd: number, bytes: number): void {
  libc.fcntl(fd, F_SETPIPE_SZ, bytes);
}

/** How many bytes wait in a pipe. */
export function bytesWaiting(fd: number): number {
  return libc.ioctl(fd, FIONREAD, ptr(count)) === 0 ? (count[0] ?? 0) : 0;
}

const count = new Int32Array(1);

/** Takes a dead child's status from the kernel, so that it is no zombie any more. False if it was not a dead child. */
export function reap(pid: number): boolean {
  const status = new Int32Array(1);
  return libc.waitpid(pid, ptr(status), WNOHANG) === pid;
}

/** The status of a child that has exited by itself. It stays to be waited for. */
export function exitStatusOf(pid: number): number | undefined {
  info.fill(0);
  libc.waitid(P_PID, pid, ptr(info), WEXITED | WNOHANG | WNOWAIT);
  const [, , code, , found, , status] = info;
  return found === pid && code === CLD_EXITED ? status : undefined;
}

/** A `siginfo_t`; of a child: signal, errno, code, nothing, pid, user, status. */
const info = new Int32Array(32);

/** From now on processes of the same user can read neither our memory nor our environment. */
export function becomeUndumpable(): void {
  if (libc.prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) !== 0) throw new Error("prctl(PR_SET_DUMPABLE) failed");
}

/** A handle that keeps meaning this one process even after its pid is used again; negative if there is none. */
export function pidfdOpen(pid: number): number {
  return Number(libc.syscall(SYS_PIDFD_OPEN, pid, 0, 0, 0));
}

/** Whether its process has ended, waited for or not. */
export function hasEnded(pidfd: number): boolean {
  return (eventsOf(pidfd) & POLLIN) !== 0;
}

/** Whether nobody is left who could write to this pipe. */
export function isAbandoned(readFd: number): boolean {
  return (eventsOf(readFd) & POLLHUP) !== 0;
}

function eventsOf(fd: number): number {
  polled[0] = fd;
  polled[1] = POLLIN;
  return libc.poll(ptr(polled), 1, 0) === 1 ? (polled[1] ?? 0) >>> 16 : 0;
}

/** A `struct pollfd`: a number of 32 bits, and two of 16 in one of ours. */
const polled = new Int32Array(2);

export function pidfdSignal(pidfd: number, signal: number): boolean {
  return Number(libc.syscall(SYS_PIDFD_SEND_SIGNAL, pidfd, signal, 0, 0)) === 0;
}

/** Our own limit on processes and threads, as it is; `undefined` if it cannot be known. */
export function processLimit(): { soft: bigint; hard: bigint } | undefined {
  const limit = new BigUint64Array(2);
  if (libc.prlimit(0, RLIMIT_NPROC, null, ptr(limit)) !== 0) return undefined;
  return { soft: limit[0] ?? 0n, hard: limit[1] ?? 0n };
}

/** What we start inherits it. May be raised again up to the hard limit. */
export function setProcessLimit({ soft, hard }: { soft: bigint; hard: bigint }): void {
  libc.prlimit(0, RLIMIT_NPROC, ptr(BigUint64Array.of(soft, hard)), null);
}
