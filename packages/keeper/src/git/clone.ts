import { accessSync, constants, mkdirSync, readdirSync, renameSync, rmSync, statSync } from "node:fs";
import { basename, dirname, join, normalize } from "node:path";
import { type CloneRequest, type CloneResult, type CloneState, HoldfastError } from "@holdfast/protocol";
import { finishedState } from "../engine/command-state.ts";
import { codeOf } from "../engine/disk-errors.ts";
import type { Engine } from "../engine/engine.ts";
import { fingerprint } from "../engine/ids.ts";
import { launch } from "../engine/launch.ts";
import type { FinishedRecord } from "../engine/record.ts";
import type { Run } from "../engine/run.ts";
import { cloneFailure } from "./clone-failure.ts";
import { clonesInProgress } from "./clones-in-progress.ts";
import { OneTimeCredentials } from "./credentials.ts";
import { findGit, gitEnvironment } from "./git-program.ts";
import { headOf } from "./head.ts";

// Progress is many short lines; the end of them is what tells why a clone failed.
const MAX_OUTPUT_BYTES = 256 * 1024;

/**
 * Clones into a directory beside the goal and puts it there by one rename, when all of it is there: a clone that is cut
 * leaves nothing. It is a command like any other: its log is its progress, it can be cancelled, and sent again under
 * the same id it is the same clone.
 */
export class Clones {
  readonly #engine: Engine;
  readonly #inProgress;
  readonly #placing = new Map<string, Promise<void>>();

  constructor(engine: Engine) {
    this.#engine = engine;
    this.#inProgress = clonesInProgress(engine.boot.stateDir);
    this.#inProgress.removeAll();
  }

  async clone(request: CloneRequest): Promise<CloneState> {
    // Who asks again may have to say the secret again, but no trace of it stays in the journal.
    const { commandId, credentials, yieldMs, ...work } = request;
    const engine = this.#engine;
    const git = findGit(engine);
    const facts = { shell: "none", maxOutputBytes: MAX_OUTPUT_BYTES, encoding: "utf8" } as const;
    const claim = engine.claim({ id: commandId, kind: "exec", fingerprint: fingerprint(work), facts });
    if (claim.state === "new") this.#begin(claim.run, { ...request, git });
    const record = claim.state === "finished" ? claim.record : await within(claim.run, yieldMs);
    if (record === undefined)
      return { status: "running", commandId: claim.state === "finished" ? claim.record.id : claim.run.id };
    return this.#result(record, goalOf(request));
  }

  #begin(run: Run, request: CloneRequest & { git: string }): void {
    const goal = goalOf(request);
    const temporary = join(dirname(goal), `.${basename(goal).slice(0, 100)}.holdfast-clone-${run.id}`);
    const credentials = this.#prepare(run, { request, goal, temporary });
    try {
      launch(this.#engine, run, {
        argv: argvOf(request, { temporary, config: credentials?.config ?? [] }),
        cwd: dirname(goal),
        env: [gitEnvironment],
        stdin: "empty",
        timeoutMs: request.timeoutMs,
        descriptor3: credentials?.descriptor,
      });
    } catch (error) {
      this.#inProgress.remove(run.id);
      throw error;
    } finally {
      credentials?.close();
    }
    const placing = this.#place(run, { temporary, goal });
    placing.catch(() => {}); // told to whoever asks
    this.#placing.set(run.id, placing);
  }

  /** What must be there before git is started. Where it cannot be, nothing was ever asked for. */
  #prepare(run: Run, clone: { request: CloneRequest; goal: string; temporary: string }) {
    const { request, goal, temporary } = clone;
    try {
      checkGoal(goal);
      mkdirSync(dirname(goal), { recursive: true });
      accessSync(dirname(goal), constants.W_OK); // a clone is long: what would fail at its end fails now
      this.#inProgress.add(run.id, temporary);
      return credentialsOf(request);
    } catch (error) {
      this.#inProgress.remove(run.id);
      this.#engine.abandon(run);
      throw error instanceof HoldfastError ? error : cannotWrite(goal, error);
    }
  }

  /** Puts the clone where it belongs, or takes it away. */
  async #place(run: Run, { temporary, goal }: { temporary: string; goal: string }): Promise<void> {
    const { record } = await run.finished;
    try {
      if (succeeded(record)) renameSync(temporary, goal);
    } catch (error) {
      throw codeOf(error) === "ENOTEMPTY" || codeOf(error) === "EEXIST" || codeOf(error) === "ENOTDIR"
        ? notEmpty(goal)
        : cannotWrite(goal, error);
    } finally {
      rmSync(temporary, { recursive: true, force: true });
      this.#inProgress.remove(run.id);
      setTimeout(() => this.#placing.delete(run.id), REMEMBERED_MS).unref();
    }
  }

  async #result(record: FinishedRecord, path: string): Promise<CloneResult> {
    await this.#placing.get(record.id);
    if (!succeeded(record)) throw cloneFailure(finishedState(this.#engine, record));
    return { status: "cloned", commandId: record.id, path, ...(await headOf(this.#engine, path)) };
  }
}

async function within(run: Run, ms: number | undefined): Promise<FinishedRecord | undefined> {
  const finished = run.finished.then(({ record }) => record);
  if (ms === undefined) return finished;
  const late = Promise.withResolvers<undefined>();
  const timer = setTimeout(() => late.resolve(undefined), ms);
  return Promise.race([finished, late.promise]).finally(() => clearTimeout(timer));
}

function goalOf({ path }: CloneRequest): string {
  return normalize(path).replace(/(?<=.)\/+$/, "");
}

// Long enough for a client that lost its connection to ask again how the last step went.
const REMEMBERED_MS = 10 * 60_000;

function succeeded({ end }: FinishedRecord): boolean {
  return end.result.state === "exited" && end.result.exitCode === 0;
}

function argvOf(
  request: CloneRequest & { git: string },
  { temporary, config }: { temporary: string; config: readonly string[] },
): string[] {
  const { git, url, branch, depth, sparse, submodules } = request;
  // Nothing is to go on in the background when the clone is done, and before it is in its place.
  const common = [git, ...["gc.auto=0", "maintenance.auto=false", ...config].flatMap((one) => ["-c", one])];
  const clone = [
    ...[...common, "clone", "--progress"],
    ...(branch === undefined ? [] : [`--branch=${branch}`]),
    ...(depth === undefined ? [] : [`--depth=${depth}`]),
    ...(submodules ? ["--recurse-submodules"] : []),
    ...(sparse === undefined ? [] : ["--sparse", "--filter=blob:none"]),
    ...["--", url, temporary],
  ];
  if (sparse === undefined) return clone;
  const choose = [...common, "-C", temporary, "sparse-checkout", "set", ...sparse];
  return ["sh", "-c", `${quoted(clone)} && ${quoted(choose)}`];
}

function quoted(words: readonly string[]): string {
  return words.map((word) => `'${word.replaceAll("'", `'\\''`)}'`).join(" ");
}

function credentialsOf({ url, credentials }: CloneRequest): OneTimeCredentials | undefined {
  if (credentials === undefined) return undefined;
  if (/^https?:/.test(url)) return new OneTimeCredentials(url, credentials);
  throw new HoldfastError("invalid_argument", "credentials are for http and https URLs", {
    hint: "for ssh, put a key into the sandbox, or use the repository's https URL with a token",
    started: "no",
  });
}

function checkGoal(goal: string): void {
  try {
    if (readdirSync(goal).length > 0) throw notEmpty(goal);
    if (statSync(goal).dev !== statSync(dirname(goal)).dev) throw cannotWrite(goal, { code: "EBUSY" });
  } catch (error) {
    if (error instanceof HoldfastError) throw error;
    if (codeOf(error) === "ENOTDIR") throw notEmpty(goal);
    if (codeOf(error) !== "ENOENT") throw cannotWrite(goal, error);
  }
}

function notEmpty(goal: string): HoldfastError {
  return new HoldfastError("already_exists", `${goal} exists and is no empty directory`, {
    hint: "clone into another path, or remove it first",
    started: "no",
    details: { path: goal },
  });
}

function cannotWrite(goal: string, cause: unknown): HoldfastError {
  const code = codeOf(cause);
  return new HoldfastError("invalid_argument", `a clone cannot be put at ${goal} (${code ?? cause})`, {
    hint: "give a path in a directory that can be written to, such as /workspace/app",
    details: { path: goal, code },
    cause,
  });
}
