import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";

export interface RestartOptions {
  /** `SIGTERM` as a service manager would; `SIGKILL` as a crash. */
  readonly signal: "SIGTERM" | "SIGKILL";
  /** Whether containers go on without their daemon, from its next start on. */
  readonly liveRestore?: boolean;
}

/** The first process of a daemon's namespace: it starts the daemon again if it was told to. */
export const RESTARTING = '"$@" & wait $!; while [ -e "$AGAIN" ]; do rm "$AGAIN"; "$@" & wait $!; done; wait';

/** Where that is told. */
export function againFile(dir: string): string {
  return join(dir, "again");
}

/** Ends the daemon, so that it starts again. Returns when the old one is gone. */
export async function endForRestart(
  dir: string,
  outermost: number,
  { signal, liveRestore }: RestartOptions,
): Promise<void> {
  if (liveRestore !== undefined) setLiveRestore(join(dir, "daemon.json"), liveRestore);
  const daemon = childrenOf(outermost).flatMap(childrenOf).find(isDaemon);
  if (daemon === undefined) throw new Error("there is no daemon to restart");
  writeFileSync(againFile(dir), "");
  process.kill(daemon, signal);
  while (isDaemon(daemon)) await Bun.sleep(20);
}

function setLiveRestore(file: string, liveRestore: boolean): void {
  const config = JSON.parse(readFileSync(file, "utf8")) as object;
  writeFileSync(file, JSON.stringify({ ...config, "live-restore": liveRestore }));
}

function childrenOf(pid: number): number[] {
  return readFileSync(`/proc/${pid}/task/${pid}/children`, "utf8").split(" ").filter(Boolean).map(Number);
}

/** A zombie has no name that counts. */
function isDaemon(pid: number): boolean {
  try {
    return /^Name:\tdockerd\n(.*\n)?State:\t[^Z]/m.test(readFileSync(`/proc/${pid}/status`, "utf8"));
  } catch {
    return false; // it is gone
  }
}
