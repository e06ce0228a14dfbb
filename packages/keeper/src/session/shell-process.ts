import { closeSync } from "node:fs";
import { constants } from "node:os";
import { startLeader } from "../engine/children.ts";
import { hasEnded, pidfdOpen } from "../engine/libc.ts";
import { isAlive, lookAt, type ProcessRef } from "../engine/proc-table.ts";
import type { ShellEnd } from "./session-shell.ts";
import type { ShellLink } from "./shell-link.ts";
import { watch } from "./shell-watch.ts";

/**
 * The process of a shell: whether it lives, and how it ended. It runs for days, and each command listens for its end: no
 * promise, which would remember all of them until then.
 */
export class ShellProcess {
  readonly ref: ProcessRef;
  /** Asked before each command, which it answers in a tenth of the time that /proc takes. */
  #handle: number;
  #end: ShellEnd | undefined;
  readonly #listening = new Set<(end: ShellEnd) => void>();

  constructor(ref: ProcessRef) {
    this.ref = ref;
    this.#handle = pidfdOpen(ref.pid);
    // The number may have been another's already.
    if (!isAlive(ref)) this.release();
  }

  get isAlive(): boolean {
    return this.#handle < 0 ? isAlive(this.ref) : !hasEnded(this.#handle);
  }

  /** It was seen to end. */
  ended(end: ShellEnd): void {
    this.#end ??= end;
    for (const hear of this.#listening) hear(this.#end);
    this.#listening.clear();
  }

  /** Called once, now if it has ended; not any more after what this returns was called. */
  onEnd(hear: (end: ShellEnd) => void): () => void {
    if (this.#end !== undefined) hear(this.#end);
    else this.#listening.add(hear);
    return () => this.#listening.delete(hear);
  }

  /** Until its end was seen, or for so long. */
  endedWithin(ms: number): Promise<void> {
    return new Promise((resolve) => {
      const timer = setTimeout(resolve, ms);
      this.onEnd(() => {
        clearTimeout(timer);
        resolve();
      });
    });
  }

  /** Gives its handle back. It can be asked all the same. */
  release(): void {
    if (this.#handle >= 0) closeSync(this.#handle);
    this.#handle = -1;
  }
}

/** Starts a shell as the leader of a session and a process group of its own. */
export function spawnShell(program: {
  cmd: string[];
  argv0: string;
  cwd: string;
  env: Record<string, string>;
  stdio: [number, number, number, ...number[]];
}): ShellProcess {
  const child = startLeader(undefined, () => Bun.spawn({ ...program, detached: true }));
  const shell = new ShellProcess(refOf(child.pid));
  void child.exited.then(() => shell.ended(deathOf(child)));
  return shell;
}

export function refOf(pid: number): ProcessRef {
  return { pid, startTime: lookAt(pid)?.startTime ?? 0 };
}

/** How a text ended: as `over` is told, or together with its shell, or as only a look at that can tell: gone, or deaf. */
export async function endOf(
  over: PromiseWithResolvers<ShellEnd>,
  { main, link }: { main: ShellProcess | undefined; link: ShellLink },
): Promise<ShellEnd> {
  const gone: ShellEnd = { how: "died", exitCode: 137, signal: null };
  if (main === undefined) return gone;
  const forget = main.onEnd(over.resolve);
  const watching = watch(
    { main: main.ref, feedName: () => link.feedName, unread: () => link.unread },
    { gone: () => over.resolve(gone), poisoned: () => over.resolve({ how: "poisoned" }) },
  );
  try {
    return await over.promise;
  } finally {
    watching.stop();
    forget();
  }
}

function deathOf({ exitCode, signalCode }: Bun.Subprocess): ShellEnd {
  if (signalCode === null) return { how: "died", exitCode: exitCode ?? 0, signal: null };
  if (typeof signalCode === "number")
    return { how: "died", exitCode: 128 + signalCode, signal: `SIG${signalCode}` };
  return { how: "died", exitCode: 128 + (constants.signals[signalCode] ?? 0), signal: signalCode };
}
