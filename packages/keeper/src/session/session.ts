import { mkdirSync, rmSync } from "node:fs";
import {
  DEFAULT_MAX_OUTPUT_BYTES,
  HoldfastError,
  type Session as SessionAnswer,
  type SessionExecRequest,
  type SessionRestored,
} from "@holdfast/protocol";
import { answerFor, type CommandAnswer } from "../engine/command-state.ts";
import type { Engine } from "../engine/engine.ts";
import { fingerprint } from "../engine/ids.ts";
import type { Stream } from "../engine/log-writer.ts";
import type { ProcessRef } from "../engine/proc-table.ts";
import type { Run } from "../engine/run.ts";
import { BackgroundOutput } from "./background-output.ts";
import { mayDamageBash } from "./bash-bugs.ts";
import type { SessionFacts } from "./checkpoint.ts";
import { Checkpointer } from "./checkpointer.ts";
import { killSession } from "./command-tree.ts";
import { cwdOf, nearestExisting } from "./cwd.ts";
import { carriesOf, makeShell, SESSION_VARIABLE, shellMarkerOf, shellPath } from "./make-shell.ts";
import { type Aftermath, carryOut } from "./session-command.ts";
import type { SavedState, SessionShell } from "./session-shell.ts";

interface Waiting {
  readonly run: Run;
  readonly request: SessionExecRequest;
  /** Rejects if the command could not be begun. */
  readonly refused: PromiseWithResolvers<never>;
}

export interface SessionOptions {
  readonly engine: Engine;
  readonly facts: SessionFacts;
  readonly dir: string;
  /** Where its shell is to start, or was. */
  readonly cwd: string;
  /** Present for one that is known from its checkpoint only. */
  readonly asleep?: { readonly commandsLost: number };
}

/** One persistent shell and its commands: one at a time, in order. */
export class Session {
  readonly facts: SessionFacts;
  readonly #engine: Engine;
  readonly #dir: string;
  readonly #shell: SessionShell;
  readonly #checkpointer: Checkpointer;
  readonly #background = new BackgroundOutput();
  readonly #queue: Waiting[] = [];
  #cwd: string;
  #running: Run | undefined;
  /** Changed only together with the queue's being empty: what is put into it is either seen by the loop, or starts it. */
  #atWork = false;
  #working: Promise<void> = Promise.resolve();
  #awake = false;
  #waking: Promise<void> | undefined;
  /** Why it has no shell now; absent before its first. */
  #asleepBecause: SessionRestored["because"] | undefined;
  #lostCommands = 0;
  #restored: SessionRestored | undefined;
  #settled: Promise<void> = Promise.resolve();
  #ending: "stopping" | "closed" | undefined;

  constructor({ engine, facts, dir, cwd, asleep }: SessionOptions) {
    this.facts = facts;
    this.#engine = engine;
    this.#dir = dir;
    this.#cwd = cwd;
    this.#asleepBecause = asleep === undefined ? undefined : "keeper_lost";
    this.#lostCommands = asleep?.commandsLost ?? 0;
    mkdirSync(dir, { recursive: true, mode: 0o700 });
    this.#shell = makeShell({ engine, facts, dir, output: (stream, bytes) => this.#hear(stream, bytes) });
    const now = () => engine.now;
    this.#checkpointer = new Checkpointer({
      facts,
      dir,
      shell: this.#shell,
      now,
      cwd: () => this.#lookAtCwd(),
    });
  }

  /** Starts its shell for the first time. */
  async begin(): Promise<void> {
    await this.#start(undefined);
    this.#checkpointer.first();
  }

  describe(): SessionAnswer {
    const { sessionId, shell, createdAt, commandTimeoutMs } = this.facts;
    const running = this.#running?.id;
    return {
      sessionId,
      state: running !== undefined ? "running" : this.#awake ? "idle" : "asleep",
      shell,
      carries: [...carriesOf[shell]],
      cwd: this.#lookAtCwd(),
      createdAt: new Date(createdAt).toISOString(),
      ...(commandTimeoutMs !== undefined && { commandTimeoutMs }),
      ...(running !== undefined && { running }),
      waiting: this.#queue.map(({ run }) => run.id),
    };
  }

  /** Runs a command when its turn comes, or attaches to the run that already has the id. */
  async exec(request: SessionExecRequest): Promise<CommandAnswer> {
    const { commandId, yieldMs, ...work } = request;
    const { sessionId, shell } = this.facts;
    const claim = this.#engine.claim({
      id: commandId,
      kind: "session",
      fingerprint: fingerprint({ ...work, sessionId }),
      facts: {
        shell,
        sessionId,
        maxOutputBytes: request.maxOutputBytes ?? DEFAULT_MAX_OUTPUT_BYTES,
        encoding: request.encoding ?? "utf8",
      },
    });
    const answer = answerFor(this.#engine, claim, { yieldMs });
    if (claim.state !== "new") return answer;
    return Promise.race([answer, this.#enqueue(claim.run, request)]);
  }

  /** The state as it is between two commands; that before the running one, if one runs. */
  async snapshot(): Promise<SavedState> {
    await this.#settled;
    await this.#wake();
    const saved = await this.#shell.dump();
    if (saved !== undefined) return saved;
    throw new HoldfastError("unavailable", "the session's state could not be read", {
      hint: "its shell is being rebuilt: try again",
      retryable: true,
      started: "no",
    });
  }

  /** Resolves when the state after the last command is safe, and the next one can begin. */
  get settled(): Promise<void> {
    return this.#settled;
  }

  get shellPath(): string {
    return shellPath(this.#engine, this.facts.shell);
  }

  /** The processes of its shell, which do nothing by themselves: only commands and jobs do. */
  get shellProcesses(): readonly ProcessRef[] {
    const { main, helpers } = this.#shell;
    return main === undefined ? helpers : [main, ...helpers];
  }

  get cwd(): string {
    return this.#lookAtCwd();
  }

  /** The state is on disk when this resolves. */
  async checkpoint(): Promise<void> {
    await this.#settled;
    if (this.#awake) await this.#checkpointer.flush();
  }

  /** Before the instance stops: no command begins any more, and the state is on disk when this resolves. */
  async stop(): Promise<void> {
    for (const waiting of this.#queue.splice(0)) this.#finishUnrun(waiting.run);
    await this.#settled;
    this.#ending ??= "stopping";
    await this.checkpoint();
  }

  /** Ends the shell, after its EXIT trap, and all that it started; and forgets the session. May be called twice. */
  async close(): Promise<void> {
    if (this.#ending === "closed") return;
    this.#ending = "closed";
    for (const waiting of this.#queue.splice(0)) this.#finishUnrun(waiting.run);
    await this.#running?.cancel();
    await this.#working;
    await this.#checkpointer.close();
    const roots = [this.#shell.main, ...this.#shell.helpers].filter((ref) => ref !== undefined);
    await this.#shell.exit();
    await killSession({ entry: `${SESSION_VARIABLE}=${this.facts.sessionId}`, roots });
    this.#shell.close();
    rmSync(this.#dir, { recursive: true, force: true });
  }

  #enqueue(run: Run, request: SessionExecRequest): Promise<never> {
    const waiting: Waiting = { run, request, refused: Promise.withResolvers<never>() };
    run.notes = { sessionId: this.facts.sessionId, waiting: true };
    run.onCancel(async () => {
      this.#queue.splice(this.#queue.indexOf(waiting), 1);
      this.#finishUnrun(run);
    });
    this.#queue.push(waiting);
    if (!this.#atWork) this.#working = this.#work();
    waiting.refused.promise.catch(() => {}); // the caller may have stopped waiting
    return waiting.refused.promise;
  }

  async #work(): Promise<void> {
    this.#atWork = true;
    for (let next = this.#queue[0]; next !== undefined; next = this.#queue[0]) {
      try {
        await this.#makeReady();
        // It may have been cancelled while the shell was being made ready.
        if (this.#queue[0] !== next) continue;
        this.#queue.shift();
        await this.#carryOut(next);
      } catch (error) {
        this.#refuse(next, error);
      }
    }
    this.#atWork = false;
  }

  async #makeReady(): Promise<void> {
    await this.#wake();
    if (this.#shell.alive) return;
    await this.#rebuild("shell_exited");
    await this.#wake(); // a shell that could not be rebuilt is an error that the caller sees
  }

  #refuse(waiting: Waiting, error: unknown): void {
    if (this.#queue[0] === waiting) this.#queue.shift();
    this.#engine.abandon(waiting.run);
    waiting.refused.reject(error);
  }

  async #carryOut({ run, request }: Waiting): Promise<void> {
    const { sessionId, commandTimeoutMs } = this.facts;
    const cwdRecovered = this.#recoverCwd();
    const restored = this.#restored;
    const background = this.#background.moveTo((stream, bytes) => run.write(stream, bytes));
    run.notes = { sessionId, waiting: false };
    this.#running = run;
    const { ending, shellExited, aftermath } = await carryOut({
      engine: this.#engine,
      shell: this.#shell,
      shellMarker: shellMarkerOf(this.facts),
      run,
      request,
      timeoutMs: request.timeoutMs ?? commandTimeoutMs,
      cd: cwdRecovered?.to,
    }).finally(() => {
      this.#running = undefined;
    });
    this.#restored = undefined;
    const facts = { sessionId, ran: true, shellExited, stateKept: aftermath === "kept" };
    const extra = { ...facts, ...defined({ restored, cwdRecovered, background }) };
    this.#settled = this.#settle(aftermath, request.command);
    run.finish(ending, { at: this.#engine.now, extra });
    await this.#settled;
  }

  /** Makes the shell ready for the next command, which does not begin before. Never throws: the next wake tries again. */
  async #settle(aftermath: Aftermath, text: string): Promise<void> {
    if (this.#ending !== undefined) return;
    const safe = aftermath === "kept" && (await this.#shell.settle());
    if (!safe) await this.#rebuild(aftermath === "kept" ? "shell_exited" : aftermath);
    else if (mayDamageBash(text)) await this.#rebuild("shell_unusable");
    this.#checkpointer.soon();
  }

  async #rebuild(because: SessionRestored["because"]): Promise<void> {
    if (this.#ending !== undefined) return;
    const untold = this.#restored?.commandsLost ?? 0;
    const { commands } = this.#shell;
    try {
      const { from, behind } = await this.#shell.rebuild(() => this.#checkpointer.saved);
      this.#restored = { because, from, commandsLost: untold + behind };
    } catch {
      this.#awake = false;
      this.#asleepBecause = because;
      this.#lostCommands = untold + commands - (this.#checkpointer.saved?.commands ?? 0);
    }
  }

  /** Starts the shell from its checkpoint, unless it runs. One start, however many ask. */
  #wake(): Promise<void> {
    if (this.#ending !== undefined) return Promise.reject(ended(this.facts));
    if (this.#awake) return Promise.resolve();
    this.#waking ??= this.#start(this.#checkpointer.saved).finally(() => {
      this.#waking = undefined;
    });
    return this.#waking;
  }

  async #start(saved: SavedState | undefined): Promise<void> {
    try {
      await this.#shell.start(saved);
    } catch (error) {
      throw cannotStart(this.facts, error);
    }
    this.#awake = true;
    const because = this.#asleepBecause;
    if (because === undefined) return;
    this.#restored = {
      because,
      from: saved === undefined ? "nothing" : "checkpoint",
      commandsLost: this.#lostCommands,
    };
  }

  #finishUnrun(run: Run): void {
    const ending = { exitCode: 130, signal: null, timedOut: false, cancelled: true, oomKilled: false };
    const { sessionId } = this.facts;
    const extra = { sessionId, ran: false, shellExited: false, stateKept: true };
    run.finish(ending, { at: this.#engine.now, extra });
  }

  #hear(stream: Stream, bytes: Uint8Array): void {
    if (this.#running !== undefined) this.#running.write(stream, bytes);
    else this.#hearBackground(stream, bytes);
  }

  #hearBackground(stream: Stream, bytes: Uint8Array): void {
    this.#background.add(stream, bytes);
    this.#engine.use.note(`a job of session ${this.facts.sessionId} wrote output`);
  }

  #lookAtCwd(): string {
    const pid = this.#awake ? this.#shell.main?.pid : undefined;
    if (pid !== undefined) this.#cwd = cwdOf(pid)?.path ?? this.#cwd;
    return this.#cwd;
  }

  #recoverCwd(): { from: string; to: string } | undefined {
    const pid = this.#shell.main?.pid;
    const cwd = pid === undefined ? undefined : cwdOf(pid);
    return cwd?.gone === true ? { from: cwd.path, to: nearestExisting(cwd.path) } : undefined;
  }
}

function defined(facts: Record<string, unknown>): Record<string, unknown> {
  return Object.fromEntries(Object.entries(facts).filter(([, value]) => value !== undefined));
}

function ended(facts: SessionFacts): HoldfastError {
  return new HoldfastError("wrong_state", `the session ${facts.sessionId} is being ended`, {
    hint: "create another session, or wait until the sandbox runs again",
    started: "no",
  });
}

function cannotStart(facts: SessionFacts, cause: unknown): HoldfastError {
  const why = cause instanceof Error ? cause.message : String(cause);
  return new HoldfastError(
    "unavailable",
    `the shell of session ${facts.sessionId} could not be started: ${why}`,
    {
      hint: "the sandbox may be out of processes, memory or disk: end something, then try again",
      started: "no",
      cause,
    },
  );
}
