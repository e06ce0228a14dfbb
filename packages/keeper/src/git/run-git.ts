import { HoldfastError } from "@holdfast/protocol";
import type { Engine } from "../engine/engine.ts";
import { environmentOf } from "../engine/environment.ts";
import type { Pipe } from "../engine/libc.ts";
import { Pump } from "../engine/pump.ts";
import { checkCwd, spawn } from "../engine/spawn.ts";
import { killTree } from "../engine/tree.ts";
import { findGit, gitEnvironment } from "./git-program.ts";

// A look at a repository takes seconds at most; on a disk that hangs nobody is helped by waiting.
const TIMEOUT_MS = 60_000;
const MAX_BYTES = 128 * 1024 * 1024;

export interface GitAnswer {
  readonly exitCode: number;
  /** Bytes, one to a character. */
  readonly stdout: string;
  readonly stderr: string;
  /** There was more than `maxBytes`. */
  readonly cut: boolean;
}

/**
 * Runs git for a look: nothing of it is journalled, and it takes no locks. Settings of the repository that would run a
 * program of their own are switched off.
 */
export async function runGit(
  engine: Engine,
  { cwd, args, maxBytes = MAX_BYTES }: { cwd: string; args: readonly string[]; maxBytes?: number },
): Promise<GitAnswer> {
  const git = findGit(engine);
  checkCwd(cwd);
  const id = `git-${crypto.randomUUID()}`;
  const child = spawn({
    argv: [git, "--no-optional-locks", "-c", "core.fsmonitor=false", "-c", "core.quotePath=false", ...args],
    cwd,
    env: environmentOf(engine.boot, { id, layers: [gitEnvironment] }),
    stdin: "empty",
  });
  const end = () => void killTree({ leader: child.ref, marker: id }, { graceMs: 0 });
  const timer = setTimeout(end, TIMEOUT_MS);
  const out = new Collected(maxBytes, end);
  const err = new Collected(64 * 1024, () => {});
  const pumps = [out.pump(child.stdout), err.pump(child.stderr)];
  const { exitCode } = await child.exited;
  clearTimeout(timer);
  await Promise.all(pumps.map((pump) => pump.settle()));
  return { exitCode, stdout: out.text("latin1"), stderr: err.text("utf8"), cut: out.cut };
}

/** For what must succeed: throws what git said. `orPart`: the beginning of a long answer will do. */
export async function askGit(
  engine: Engine,
  call: Parameters<typeof runGit>[1] & { orPart?: true },
): Promise<GitAnswer> {
  const answer = await runGit(engine, call);
  const { exitCode, stderr, cut } = answer;
  if (cut && call.orPart !== true)
    throw new HoldfastError("too_large", "git has more to say about this repository than an answer takes");
  if (exitCode === 0 || cut) return answer;
  const details = { path: call.cwd, exitCode };
  if (/not a git repository/i.test(stderr))
    throw new HoldfastError("not_found", `${call.cwd} is in no git repository`, {
      hint: "give the path of a repository, or clone one first",
      details,
    });
  throw new HoldfastError("git_failed", stderr.trim() || "git was ended before it gave an answer", {
    hint: "look at the repository with git itself, in exec",
    details: { ...details, reason: "other" },
  });
}

class Collected {
  readonly #chunks: Uint8Array[] = [];
  readonly #maxBytes: number;
  readonly #onFull: () => void;
  #size = 0;
  cut = false;

  constructor(maxBytes: number, onFull: () => void) {
    this.#maxBytes = maxBytes;
    this.#onFull = onFull;
  }

  pump(pipe: Pipe): Pump {
    return new Pump(pipe, { take: (...pieces) => this.#take(...pieces), room: () => undefined });
  }

  text(encoding: "latin1" | "utf8"): string {
    return Buffer.concat(this.#chunks).toString(encoding);
  }

  #take(...pieces: Uint8Array[]): void {
    for (const bytes of pieces) this.#takeOne(bytes);
  }

  #takeOne(bytes: Uint8Array): void {
    const part = bytes.subarray(0, this.#maxBytes - this.#size);
    this.#size += part.length;
    if (part.length > 0) this.#chunks.push(part);
    if (part.length === bytes.length || this.cut) return;
    this.cut = true;
    this.#onFull();
  }
}
