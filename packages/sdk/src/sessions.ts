import type {
  Command,
  CreateSession,
  SessionCommandResult,
  SessionCommandState,
  Session as SessionInfo,
} from "@holdfast/protocol";
import { type RunOptions, runToEnd, type Seen } from "./exec.ts";
import { makeId } from "./ids.ts";
import { launchProcess, type Process, type StartProcessOptions } from "./processes.ts";
import { type Conditions, conditionHeaders, type Scope, type Waiting } from "./scope.ts";

/** How the shell of a session begins. */
export interface CreateSessionOptions extends CreateSession, Conditions {
  signal?: AbortSignal | undefined;
}

/** A session's command that ended, with what it meant for the shell. */
export type SessionExecResult = SessionCommandResult & Seen;
/** A session's command as it is now. */
export type SessionExecState = SessionCommandState & Seen;

/**
 * A persistent shell. Its commands run one at a time, in order; two sessions never see each other.
 *
 * @example
 * ```ts
 * const shell = await sbx.createSession({ cwd: "/workspace" });
 * await shell.exec("export NAME=value");
 * console.log((await shell.exec("echo $NAME")).stdout);
 * ```
 */
export class Session {
  readonly sessionId: string;
  readonly #scope: Scope;
  #info: SessionInfo;

  constructor(scope: Scope, info: SessionInfo) {
    this.#scope = scope;
    this.#info = info;
    this.sessionId = info.sessionId;
  }

  /** What the server last said about it. `refresh` asks again. */
  get info(): Readonly<SessionInfo> {
    return this.#info;
  }

  /**
   * Runs a command in this shell, after those that wait already. Any text leaves the session usable. If it ends the
   * shell (`exit`, a crash, a timeout), the next command finds the state from before it, and says so in `restored`.
   *
   * @example
   * ```ts
   * await shell.exec("cd /workspace/app && nvm use 22");
   * const { exitCode, stdout } = await shell.exec("npm test", { timeoutMs: 60_000 });
   * ```
   */
  exec(command: string, options: RunOptions & { yieldMs: number }): Promise<SessionExecState>;
  exec(command: string, options?: RunOptions): Promise<SessionExecResult>;
  exec(command: string, options: RunOptions = {}): Promise<SessionExecState> {
    const path = `${pathOf(this.#scope, this.sessionId)}/exec`;
    return runToEnd<SessionCommandState>({ scope: this.#scope, path, what: { command }, options });
  }

  /**
   * Starts a process with a copy of this shell's state. Nothing that it does comes back into the session.
   *
   * @example
   * ```ts
   * await shell.exec("export PORT=3000");
   * const dev = await shell.startProcess("npm run dev");
   * ```
   */
  startProcess(command: Command, options: Omit<StartProcessOptions, "cwd"> = {}): Promise<Process> {
    const path = `${pathOf(this.#scope, this.sessionId)}/processes`;
    return launchProcess({ scope: this.#scope, path, what: { command }, options });
  }

  /**
   * Asks the server for the present state.
   *
   * @example
   * ```ts
   * const { running, waiting } = (await shell.refresh()).info;
   * ```
   */
  async refresh(options: Waiting = {}): Promise<this> {
    this.#info = await getInfo(this.#scope, this.sessionId, options);
    return this;
  }

  /**
   * Ends the shell and forgets its state. Background processes that it started end with it.
   *
   * @example
   * ```ts
   * await shell.delete();
   * ```
   */
  async delete({ signal }: Waiting = {}): Promise<void> {
    const path = pathOf(this.#scope, this.sessionId);
    await this.#scope.client.json({ method: "DELETE", path, again: "safe", signal });
  }
}

export async function createSession(scope: Scope, options: CreateSessionOptions): Promise<Session> {
  const { ifGeneration, ifContinuity, signal, ...request } = options;
  const answer = await scope.client.json<SessionInfo>({
    method: "POST",
    path: `${scope.path}/sessions`,
    json: { ...request, sessionId: request.sessionId ?? makeId("ses") },
    headers: conditionHeaders({ ifGeneration, ifContinuity }),
    again: "safe",
    signal,
  });
  return new Session(scope, answer.body);
}

export async function getSession(scope: Scope, sessionId: string, options: Waiting): Promise<Session> {
  return new Session(scope, await getInfo(scope, sessionId, options));
}

export async function listSessions(scope: Scope, { signal }: Waiting): Promise<SessionInfo[]> {
  const call = { method: "GET", path: `${scope.path}/sessions`, again: "safe", signal } as const;
  return (await scope.client.json<{ sessions: SessionInfo[] }>(call)).body.sessions;
}

async function getInfo(scope: Scope, sessionId: string, { signal }: Waiting): Promise<SessionInfo> {
  const path = pathOf(scope, sessionId);
  return (await scope.client.json<SessionInfo>({ method: "GET", path, again: "safe", signal })).body;
}

function pathOf(scope: Scope, sessionId: string): string {
  return `${scope.path}/sessions/${encodeURIComponent(sessionId)}`;
}
