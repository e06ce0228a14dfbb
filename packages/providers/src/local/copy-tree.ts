import { readFileSync } from "node:fs";
import { HoldfastError } from "@holdfast/protocol";
import { isRoot } from "./host-user.ts";
import { helperEnvironment, programPath } from "./programs.ts";

const LOOK_EVERY_MS = 200;

export interface TreeCopy {
  readonly from: string;
  /** A directory that is there and is this user's. */
  readonly to: string;
  /** Whose the copy is. */
  readonly uid: number;
  onProgress?(copiedBytes: number): void;
  readonly signal: AbortSignal;
}

/**
 * Copies a tree that a hostile program may have made: `cp` walks by file descriptors and through no link, shares blocks
 * where the file system can, and keeps holes, hard links, times and modes. As root it runs as the copy's owner, who may
 * read everything and write only what is his: nothing has to change hands afterwards, which would take set-uid bits
 * away. It ends with the server.
 */
export async function copyTree({ from, to, uid, onProgress, signal }: TreeCopy): Promise<void> {
  signal.throwIfAborted();
  const child = Bun.spawn([...asOwner(uid), programPath("cp"), ...HOW, "-T", "--", from, to], {
    stdin: "ignore",
    stdout: "ignore",
    stderr: "pipe",
    env: helperEnvironment(),
  });
  const stop = () => child.kill("SIGKILL");
  signal.addEventListener("abort", stop, { once: true });
  const looking = setInterval(() => onProgress?.(writtenBy(child.pid)), LOOK_EVERY_MS);
  try {
    const stderr = await new Response(child.stderr).text();
    const exitCode = await child.exited;
    signal.throwIfAborted();
    if (exitCode !== 0) throw failed(from, stderr);
  } finally {
    clearInterval(looking);
    signal.removeEventListener("abort", stop);
  }
}

const HOW = ["-a", "--no-preserve=ownership", "--reflink=auto", "--sparse=auto"];

function asOwner(uid: number): string[] {
  const ownEnd = [programPath("setpriv"), "--pdeathsig", "KILL"];
  if (!isRoot()) return ownEnd;
  const readsAll = ["--inh-caps", "+dac_read_search", "--ambient-caps", "+dac_read_search"];
  return [...ownEnd, "--reuid", String(uid), "--regid", String(uid), "--clear-groups", ...readsAll];
}

/** What the process has written so far; blocks that are shared are not written. */
function writtenBy(pid: number): number {
  try {
    return Number(/^wchar: (\d+)$/m.exec(readFileSync(`/proc/${pid}/io`, "utf8"))?.[1] ?? 0);
  } catch {
    return 0; // it has just ended
  }
}

function failed(from: string, stderr: string): HoldfastError {
  const said = stderr.trim().split("\n").at(-1)?.slice(-400) ?? "";
  const isFull = said.endsWith("No space left on device");
  return new HoldfastError("internal", `cannot copy ${from}: ${said}`, {
    hint: isFull
      ? "Make room in the data dir, and try again; what was copied is removed again."
      : "What was copied is removed again. A server of a plain user cannot copy what that user may not read.",
    retryable: true,
    details: { errno: isFull ? "ENOSPC" : undefined },
  });
}

/** Whether copies in this directory share their blocks with the original: found by making one. */
export async function sharesBlocks(dir: string): Promise<boolean> {
  const [from, to] = [`${dir}/.reflink-from`, `${dir}/.reflink-to`];
  try {
    await Bun.write(from, "shared?");
    const argv = [programPath("cp"), "--reflink=always", "--", from, to];
    const child = Bun.spawn(argv, { stdin: "ignore", stdout: "ignore", stderr: "ignore" });
    return (await child.exited) === 0;
  } finally {
    for (const file of [from, to])
      await Bun.file(file)
        .delete()
        .catch(() => undefined);
  }
}

/** The blocks that these trees take on their disk. */
export async function diskUsage(dirs: readonly string[]): Promise<number> {
  const child = Bun.spawn([programPath("du"), "-s", "-c", "-B1", "--", ...dirs], {
    stdin: "ignore",
    stdout: "pipe",
    stderr: "ignore",
    env: helperEnvironment(),
  });
  const total = (await new Response(child.stdout).text()).trim().split("\n").at(-1) ?? "";
  await child.exited;
  return Number.parseInt(total, 10) || 0;
}

/** After this the tree is there also after a power cut. */
export async function syncTree(dir: string): Promise<void> {
  const argv = [programPath("sync"), "--file-system", "--", dir];
  const exitCode = await Bun.spawn(argv, { stdin: "ignore", stdout: "ignore", stderr: "ignore" }).exited;
  if (exitCode === 0) return;
  throw new HoldfastError("internal", `cannot write ${dir} to its disk`, { details: { errno: "EIO" } });
}
