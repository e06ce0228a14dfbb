import { dlopen, FFIType } from "bun:ffi";
import { setTimeout as sleep } from "node:timers/promises";
import { type HostProcess, isAlive } from "./processes.ts";

// The same numbers on every processor that Linux runs on.
const SYS_pidfd_send_signal = 424;
const SYS_pidfd_open = 434;

const signalNumbers = { SIGTERM: 15, SIGKILL: 9, SIGSTOP: 19 } as const;

const word = FFIType.i64;
const libc = dlopen("libc.so.6", {
  syscall: { args: [word, word, word, word, word], returns: word },
  close: { args: [FFIType.i32], returns: FFIType.i32 },
});

/** Signals exactly this process, or nobody if it is gone: the descriptor cannot come to mean another one. */
export function signalProcess(
  target: Pick<HostProcess, "pid" | "startTime">,
  signal: keyof typeof signalNumbers,
): void {
  const descriptor = Number(libc.symbols.syscall(SYS_pidfd_open, target.pid, 0, 0, 0));
  if (descriptor < 0) return;
  try {
    if (isAlive(target)) libc.symbols.syscall(SYS_pidfd_send_signal, descriptor, signalNumbers[signal], 0, 0);
  } finally {
    libc.symbols.close(descriptor);
  }
}

/** Whether all of them were gone before the time was over. */
export async function waitUntilGone(
  targets: readonly HostProcess[],
  options: { timeoutMs: number; signal: AbortSignal },
): Promise<boolean> {
  const deadline = performance.now() + options.timeoutMs;
  for (let pauseMs = 1; targets.some(isAlive); pauseMs = Math.min(pauseMs * 2, 20)) {
    if (performance.now() >= deadline) return false;
    await sleep(pauseMs, undefined, { signal: options.signal });
  }
  return true;
}
