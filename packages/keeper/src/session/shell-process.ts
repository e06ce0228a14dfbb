import { constants } from "node:os";
import { startLeader } from "../engine/children.ts";
import { lookAt, type ProcessRef } from "../engine/proc-table.ts";
import type { ShellEnd } from "./session-shell.ts";
import type { ShellLink } from "./shell-link.ts";
import { watch } from "./shell-watch.ts";

export interface ShellProcess {
  readonly ref: ProcessRef;
  readonly death: PromiseWithResolvers<ShellEnd>;
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
  const death = Promise.withResolvers<ShellEnd>();
  void child.exited.then(() => death.resolve(deathOf(child)));
  return { ref: refOf(child.pid), death };
}

export function refOf(pid: number): ProcessRef {
  return { pid, startTime: lookAt(pid)?.startTime ?? 0 };
}

/** The first of these ends, or what only a look at the shell can tell: that it is gone, or deaf. */
export async function firstOf(
  ends: Promise<ShellEnd>[],
  { main, link }: { main: ProcessRef | undefined; link: ShellLink },
): Promise<ShellEnd> {
  const gone: ShellEnd = { how: "died", exitCode: 137, signal: null };
  if (main === undefined) return gone;
  const seen = Promise.withResolvers<ShellEnd>();
  const watching = watch(
    { main, feedName: () => link.feedName, unread: () => link.unread },
    { gone: () => seen.resolve(gone), poisoned: () => seen.resolve({ how: "poisoned" }) },
  );
  try {
    return await Promise.race([...ends, seen.promise]);
  } finally {
    watching.stop();
  }
}

function deathOf({ exitCode, signalCode }: Bun.Subprocess): ShellEnd {
  if (signalCode === null) return { how: "died", exitCode: exitCode ?? 0, signal: null };
  if (typeof signalCode === "number")
    return { how: "died", exitCode: 128 + signalCode, signal: `SIG${signalCode}` };
  return { how: "died", exitCode: 128 + (constants.signals[signalCode] ?? 0), signal: signalCode };
}
