import type { CloneRequest, CloneResult, CloneState, GitDiff, GitStatus } from "@holdfast/protocol";
import { HoldfastError } from "@holdfast/protocol/errors";
import { sleep } from "./backoff.ts";
import { cancellable } from "./cancellable.ts";
import { cancelCommand, commandPath } from "./exec.ts";
import { makeId } from "./ids.ts";
import { readLogs } from "./logs.ts";
import type { Scope, Waiting } from "./scope.ts";

/** How far git has come, as it says it itself: "Receiving objects", 45. */
export interface CloneProgress {
  phase: string;
  percent: number;
  done: number;
  total: number;
}

/** What of a repository to clone, and as whom. */
export interface CloneOptions {
  /** A branch or a tag. Default: the remote's own choice. */
  branch?: string | undefined;
  /** Only so many commits of history. */
  depth?: number | undefined;
  /** Only these directories, beside the files at the top. */
  sparse?: string[] | undefined;
  submodules?: boolean | undefined;
  /** For this clone only, over http or https. They are kept nowhere: not on disk, in a URL, an argument or a log. */
  credentials?: { username?: string; password: string } | undefined;
  timeoutMs?: number | undefined;
  commandId?: string | undefined;
  onProgress?: ((progress: CloneProgress) => void) | undefined;
  /** Aborting ends it; nothing half-made is left. */
  signal?: AbortSignal | undefined;
}

/** What to compare. */
export interface GitDiffOptions {
  /** What is staged, rather than what is not. */
  staged?: boolean | undefined;
  /** Compare with this commit, branch or tag. */
  base?: string | undefined;
  /** Patches beyond this are left out, and `truncated` says so. Default: 1 MiB. */
  maxPatchBytes?: number | undefined;
  signal?: AbortSignal | undefined;
}

// Under the idle limits of common proxies and of `fetch` itself.
const LONGEST_WAIT_MS = 20_000;

const LAST_WORDS_MS = 1_000;

/**
 * git in a sandbox; `unsupported` where there is none.
 *
 * @example
 * ```ts
 * const { branch, files } = await sbx.git.status("/workspace/app");
 * if (files.length > 0) console.log(branch, "has changes");
 * ```
 */
export class Git {
  readonly #scope: Scope;

  constructor(scope: Scope) {
    this.#scope = scope;
  }

  /**
   * Clones a repository: whole, or not at all. The path must not exist, or be an empty directory.
   *
   * @example
   * ```ts no-run
   * await sbx.git.clone("https://example.com/team/app.git", "/workspace/app", {
   *   depth: 1,
   *   credentials: { password: process.env.GIT_TOKEN ?? "" },
   *   onProgress: ({ phase, percent }) => console.log(phase, percent),
   * });
   * ```
   */
  async clone(url: string, path: string, options: CloneOptions = {}): Promise<CloneResult> {
    const { onProgress, signal, commandId = makeId("cmd"), ...rest } = options;
    const request = { url, path, ...rest, commandId, yieldMs: LONGEST_WAIT_MS } as CloneRequest;
    return cancellable({
      work: (unwanted) => this.#cloneToEnd(request, { unwanted, onProgress }),
      cancel: () => cancelCommand(this.#scope, commandId),
      signal,
      what: `clone ${commandId}`,
    });
  }

  /**
   * What is changed in the repository at, or above, a path. Takes no lock, wakes nothing.
   *
   * @example
   * ```ts
   * for (const { path } of (await sbx.git.status("/workspace/app")).files) console.log(path);
   * ```
   */
  async status(path: string, options: Waiting = {}): Promise<GitStatus> {
    return this.#get("status", { path }, options.signal);
  }

  /**
   * How tracked files differ: with `staged` what is staged, with `base` from a commit. Untracked files are in `status`.
   *
   * @example
   * ```ts
   * const { files } = await sbx.git.diff("/workspace/app", { base: "main" });
   * for (const { path, additions, deletions } of files) console.log(path, additions, deletions);
   * ```
   */
  async diff(path: string, options: GitDiffOptions = {}): Promise<GitDiff> {
    const { signal, ...query } = options;
    return this.#get("diff", { path, ...query }, signal);
  }

  async #get<T>(
    what: string,
    query: Record<string, string | number | boolean | undefined>,
    signal?: AbortSignal,
  ) {
    const path = `${this.#scope.path}/git/${what}`;
    return (await this.#scope.client.json<T>({ method: "GET", path, query, again: "safe", signal })).body;
  }

  async #cloneToEnd(
    json: CloneRequest,
    { unwanted, onProgress }: { unwanted: AbortSignal | undefined; onProgress: CloneOptions["onProgress"] },
  ): Promise<CloneResult> {
    const done = new AbortController();
    const signal = AbortSignal.any(unwanted === undefined ? [done.signal] : [unwanted, done.signal]);
    const telling =
      onProgress && this.#tell(onProgress, { commandId: json.commandId ?? "", signal }).catch(() => {});
    try {
      for (;;) {
        const path = `${this.#scope.path}/git/clone`;
        const call = { method: "POST", path, json, again: "safe", signal: unwanted } as const;
        const { body } = await this.#scope.client.json<CloneState>(call);
        if (body.status !== "cloned") continue;
        // Its last words may be on their way.
        await Promise.race([telling, sleep(LAST_WORDS_MS)]);
        return body;
      }
    } finally {
      done.abort();
      await telling;
    }
  }

  async #tell(
    onProgress: (progress: CloneProgress) => void,
    { commandId, signal }: { commandId: string; signal: AbortSignal },
  ): Promise<void> {
    const { client } = this.#scope;
    const decoder = new TextDecoder();
    for (;;) {
      try {
        const path = `${commandPath(this.#scope, commandId)}/logs`;
        for await (const event of readLogs(client, path, { follow: true, stream: "stderr", signal }))
          if (event.type === "stderr")
            for (const progress of progressIn(decoder.decode(event.bytes))) onProgress(progress);
        return;
      } catch (error) {
        const isEarly =
          error instanceof HoldfastError && (error.code === "not_found" || error.code === "wrong_state");
        if (!isEarly) throw error;
        await sleep(50, signal); // it has not begun yet, or the sandbox is not awake yet
      }
    }
  }
}

function* progressIn(text: string): Generator<CloneProgress> {
  for (const line of text.split(/[\r\n]/)) {
    const found = /^(?:remote: )?([A-Z][\w ]*): +(\d+)% \((\d+)\/(\d+)\)/.exec(line);
    if (found === null) continue;
    const [, phase = "", percent, done, total] = found;
    yield { phase, percent: Number(percent), done: Number(done), total: Number(total) };
  }
}
