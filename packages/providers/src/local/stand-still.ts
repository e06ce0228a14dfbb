import { setTimeout as sleep } from "node:timers/promises";
import type { SandboxRef } from "@holdfast/core";
import { HoldfastError } from "@holdfast/protocol";
import { instancesOf } from "./discover.ts";
import { findHere } from "./here.ts";
import type { Layout } from "./layout.ts";
import { type InNamespace, isKeeper, readNamespace } from "./processes.ts";
import { programPath } from "./programs.ts";
import { signalProcess } from "./signal-process.ts";

/** A process stops at its next way through the kernel; one that waits for a dead disk never gets there. */
const STOP_TIMEOUT_MS = 10_000;

/**
 * Everything of the sandbox stands still while `work` is done, the keeper too: nothing is written then. What was asked
 * of it meanwhile waits.
 */
export async function standingStill<T>(
  sandbox: SandboxRef,
  { layout, signal }: { layout: Layout; signal: AbortSignal },
  work: () => Promise<T>,
): Promise<T> {
  const keepers: number[] = [];
  for (const ref of await instancesOf(sandbox, layout)) {
    for (const { process } of await findHere(layout, ref)) if (isKeeper(process)) keepers.push(process.pid);
  }
  if (keepers.length === 0) return work();
  const waker = new Waker();
  try {
    for (const keeper of keepers) await stopAll(keeper, { waker, signal });
    return await work();
  } finally {
    await waker.wake();
  }
}

/** Until a look finds nothing that still runs: what was just being forked shows up in the next one. */
async function stopAll(
  keeper: number,
  { waker, signal }: { waker: Waker; signal: AbortSignal },
): Promise<void> {
  const deadline = performance.now() + STOP_TIMEOUT_MS;
  const stopped = new Set<string>();
  for (;;) {
    const running = readNamespace(keeper).filter(({ isStopped }) => !isStopped);
    if (running.length === 0) return;
    for (const one of parentsFirst(running)) {
      const key = `${one.pid} ${one.startTime}`;
      if (!stopped.has(key)) waker.remember(one.pid);
      stopped.add(key);
      signalProcess(one, "SIGSTOP");
    }
    signal.throwIfAborted();
    if (performance.now() > deadline) throw doesNotStop(running);
    await sleep(1);
  }
}

/** A shell that is stopped before its child, and continued after it, never sees that the child was stopped. */
function parentsFirst(found: readonly InNamespace[]): InNamespace[] {
  return [...found].sort((a, b) => (a.pids.at(-1) ?? 0) - (b.pids.at(-1) ?? 0));
}

/**
 * A shell that continues what was stopped, the last one first, as soon as its input ends: when we say so, or when we
 * die. It is told of each process before that is stopped, and apart from the server's own signals.
 */
class Waker {
  readonly #shell = Bun.spawn([programPath("sh"), "-c", WAKE], {
    stdin: "pipe",
    stdout: "ignore",
    stderr: "ignore",
    detached: true,
  });

  remember(pid: number): void {
    this.#shell.stdin.write(`${pid}\n`);
    this.#shell.stdin.flush();
  }

  /** Resolves when everything runs again. */
  async wake(): Promise<void> {
    await this.#shell.stdin.end();
    await this.#shell.exited;
  }
}

const WAKE = `trap '' HUP INT TERM; while read -r pid; do all="$pid $all"; done
for pid in $all; do kill -CONT "$pid"; done`;

function doesNotStop(running: readonly InNamespace[]): HoldfastError {
  const pids = running.map(({ pid }) => pid);
  return new HoldfastError("unavailable", `the processes ${pids.join(", ")} do not stand still`, {
    hint: "They wait in the kernel, mostly for a disk or a network file system. Stop the sandbox first, or try again.",
    details: { pids },
  });
}
