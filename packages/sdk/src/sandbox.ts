import type {
  Command,
  Continuity,
  CreateSandbox,
  Process as ProcessInfo,
  SandboxEvent,
  Sandbox as SandboxInfo,
  SandboxState,
  Session as SessionInfo,
  Terminal as TerminalInfo,
  Turn as TurnInfo,
  UpdateSandbox,
  Usage,
  Why,
} from "@holdfast/protocol";
import type { LogEvent } from "@holdfast/protocol/log-frames";
import { Claim, type ClaimOptions, makeClaim } from "./claims.ts";
import type { Client } from "./client.ts";
import {
  cancelCommand,
  commandPath,
  type ExecOptions,
  type ExecResult,
  type ExecState,
  exec,
  getCommand,
} from "./exec.ts";
import { meansEnded } from "./failures.ts";
import { Files } from "./files.ts";
import { Git } from "./git.ts";
import type {
  CallOptions,
  CreateOptions,
  DeleteOptions,
  GetOrCreateOptions,
  ListOptions,
  ProgressOptions,
  QueueOptions,
} from "./lifecycle.ts";
import * as lifecycle from "./lifecycle.ts";
import { type LogOptions, readLogs } from "./logs.ts";
import { Ports } from "./ports.ts";
import {
  getProcess,
  listProcesses,
  type Process,
  type StartProcessOptions,
  startProcess,
} from "./processes.ts";
import { type Scope, type Waiting, whileHeld } from "./scope.ts";
import {
  type CreateSessionOptions,
  createSession,
  getSession,
  listSessions,
  type Session,
} from "./sessions.ts";
import {
  type ForkOptions,
  fork,
  makeSnapshot,
  type Snapshot,
  type SnapshotOptions,
  snapshotsOf,
} from "./snapshots.ts";
import {
  type AttachOptions,
  attachTerminal,
  listTerminals,
  openTerminal,
  type Terminal,
  type TerminalOptions,
} from "./terminals.ts";
import { type EventOptions, events, followEvents } from "./timeline.ts";
import { type BeginTurnOptions, beginTurn, endTurn, Turn } from "./turns.ts";
import { type FollowUsageOptions, followUsage, type UsageOptions, usage } from "./usage.ts";
import { type FileEvent, type WatchOptions, watchFiles } from "./watch.ts";

/**
 * A sandbox, held. The handle is a view: it can be dropped at any time, and another one had by name or id.
 *
 * @example
 * ```ts
 * await using sbx = await Sandbox.getOrCreate({ name: "issue-42" });
 * const { stdout, exitCode } = await sbx.exec("npm test", { timeoutMs: 60_000 });
 * ```
 */
export class Sandbox implements AsyncDisposable {
  readonly id: string;
  /** Its files: read, write, list, and so on. */
  readonly files: Files;
  /** Addresses outside for what listens inside. */
  readonly ports: Ports;
  /** git in it: clone, status, diff. */
  readonly git: Git;
  #info: SandboxInfo;
  #held = new AbortController();
  readonly #scope: Scope;
  /** Those that are open, the latest last: that is the one its calls are a part of. */
  #turns: readonly Turn[] = [];
  #claim: Claim | undefined;

  private constructor(client: Client, info: SandboxInfo) {
    this.id = info.id;
    this.#info = info;
    this.#scope = {
      client: client.carrying(() => ({ turn: this.#turns.at(-1)?.turnId, claim: this.#claim?.token })),
      path: lifecycle.sandboxPath(info.id),
      lifetime: () => this.#held.signal,
    };
    this.files = new Files(this.#scope, info.id);
    this.ports = new Ports(this.#scope);
    this.git = new Git(this.#scope);
  }

  /**
   * Makes a new sandbox. Resolves when its first command would run.
   *
   * @example
   * ```ts
   * const sbx = await Sandbox.create({ network: "none", limits: { memoryMiB: 512 } });
   * const once = await Sandbox.create({ persistent: false });   // gone when its turn ends
   * ```
   *
   * @example
   * ```ts no-run
   * const tight = await Sandbox.create({
   *   provider: "docker",
   *   image: "node:22",
   *   user: "node",
   *   readOnly: true,
   *   runtime: "runsc",
   *   mounts: [{ source: "/srv/data", target: "/data" }],   // where the operator allows it
   * });
   * ```
   */
  static async create(spec: CreateSandbox = {}, options: CreateOptions = {}): Promise<Sandbox> {
    return Sandbox.#hold(await lifecycle.create(spec, options));
  }

  /**
   * The sandbox with this id or name; `not_found` if there is none. Wakes and creates nothing.
   *
   * @example
   * ```ts
   * const sbx = await Sandbox.get("issue-42");
   * ```
   */
  static async get(idOrName: string, options: CallOptions = {}): Promise<Sandbox> {
    return Sandbox.#hold(await lifecycle.get(idOrName, options));
  }

  /**
   * The sandbox of this name, made if there is none. Many callers at once get the same one; another spec under the
   * same name is `spec_conflict`, with the difference in `details`.
   *
   * @example
   * ```ts
   * const sbx = await Sandbox.getOrCreate({ name: "issue-42", lifetimeSeconds: 3600 });
   * ```
   */
  static async getOrCreate(
    spec: CreateSandbox & { name: string },
    options: GetOrCreateOptions = {},
  ): Promise<Sandbox> {
    return Sandbox.#hold(await lifecycle.getOrCreate(spec, options));
  }

  /**
   * All sandboxes, or those in a state or with a label.
   *
   * @example
   * ```ts
   * for (const sbx of await Sandbox.list({ label: "team=web" })) console.log(sbx.name, sbx.state);
   * ```
   */
  static async list(options: ListOptions = {}): Promise<Sandbox[]> {
    return (await lifecycle.list(options)).map(Sandbox.#hold);
  }

  /**
   * The timeline of the sandbox with this id or name, also when it was deleted.
   *
   * @example
   * ```ts
   * const last = (await Sandbox.events("issue-42")).at(-1);
   * console.log(last?.type, last?.cause);
   * ```
   */
  static events(idOrName: string, options: CallOptions & EventOptions = {}): Promise<SandboxEvent[]> {
    return lifecycle.eventsOf(idOrName, options);
  }

  static #hold({ client, info }: lifecycle.Held): Sandbox {
    return new Sandbox(client, info);
  }

  /** Everything the server last said about it. `refresh` asks again. */
  get info(): Readonly<SandboxInfo> {
    return this.#info;
  }

  /** Unique on its server; it can be used wherever an id can. */
  get name(): string {
    return this.#info.name;
  }

  /** As the server last said it. */
  get state(): SandboxState {
    return this.#info.state;
  }

  /** Which instance this was, counted from 1. It only ever grows. */
  get generation(): number {
    return this.#info.generation;
  }

  /** How that instance relates to the one before it. */
  get continuity(): Continuity {
    return this.#info.continuity;
  }

  /**
   * Runs one command to its end. A string runs in a fresh shell, an array as it is; nothing persists from one to the
   * next but files. A non-zero exit is a result, not an error. If the connection breaks, the SDK attaches again by
   * the command's id: it never runs twice.
   *
   * @example
   * ```ts
   * const { stdout, exitCode } = await sbx.exec(["git", "log", "-1"], { cwd: "/workspace/app" });
   * ```
   */
  exec(command: Command, options: ExecOptions & { yieldMs: number }): Promise<ExecState>;
  exec(command: Command, options?: ExecOptions): Promise<ExecResult>;
  exec(command: Command, options: ExecOptions = {}): Promise<ExecState> {
    return exec(this.#scope, command, options);
  }

  /**
   * What became of a command: also one that another client started, or that was left running with `yieldMs`.
   *
   * @example
   * ```ts
   * const left = await sbx.exec("make", { commandId: "make-1", yieldMs: 0 });
   * const state = await sbx.getCommand("make-1");
   * ```
   */
  getCommand(commandId: string, options: Waiting = {}): Promise<ExecState> {
    return getCommand(this.#scope, commandId, options);
  }

  /**
   * Ends a command with everything it started.
   *
   * @example
   * ```ts
   * await sbx.exec("sleep 1000", { commandId: "nap", yieldMs: 0 });
   * await sbx.cancelCommand("nap");
   * ```
   */
  cancelCommand(commandId: string, options: Waiting = {}): Promise<void> {
    return cancelCommand(this.#scope, commandId, options);
  }

  /**
   * A command's output as events, from any offset; see `Process.logs`.
   *
   * @example
   * ```ts
   * const { commandId } = await sbx.exec("make", { yieldMs: 0 });
   * for await (const event of sbx.commandLogs(commandId, { follow: true })) console.log(event.type);
   * ```
   */
  commandLogs(commandId: string, options: LogOptions = {}): AsyncGenerator<LogEvent> {
    const signal = whileHeld(this.#scope, options.signal);
    return readLogs(this.#scope.client, `${commandPath(this.#scope, commandId)}/logs`, {
      ...options,
      signal,
    });
  }

  /**
   * Starts a program that runs on by itself: a server, a build, a watcher.
   *
   * @example
   * ```ts
   * const server = await sbx.startProcess("npm run dev", { cwd: "/workspace/app" });
   * await server.waitForPort(3000);
   * ```
   */
  startProcess(command: Command, options: StartProcessOptions = {}): Promise<Process> {
    return startProcess(this.#scope, command, options);
  }

  /**
   * A process by its id, running or ended.
   *
   * @example
   * ```ts
   * const again = await sbx.getProcess(server.processId);
   * ```
   */
  getProcess(processId: string, options: Waiting = {}): Promise<Process> {
    return getProcess(this.#scope, processId, options);
  }

  /**
   * All processes that are known, running or ended. Commands of `exec` are not among them.
   *
   * @example
   * ```ts
   * for (const { processId, status } of await sbx.listProcesses()) console.log(processId, status.state);
   * ```
   */
  listProcesses(options: Waiting & { sessionId?: string | undefined } = {}): Promise<ProcessInfo[]> {
    return listProcesses(this.#scope, options);
  }

  /**
   * A persistent shell: what its commands do to it (`cd`, `export`, functions, …) is there for the next one, also
   * after its shell, its keeper or its instance died. With the id of one that exists, it is that one.
   *
   * @example
   * ```ts
   * const shell = await sbx.createSession({ cwd: "/workspace" });
   * await shell.exec("export TOKEN=1; cd app");
   * await shell.exec("echo $TOKEN in $PWD");
   * ```
   */
  createSession(options: CreateSessionOptions = {}): Promise<Session> {
    return createSession(this.#scope, options);
  }

  /**
   * A session by its id, awake or asleep.
   *
   * @example
   * ```ts
   * const shell = await sbx.getSession("main");
   * ```
   */
  getSession(sessionId: string, options: Waiting = {}): Promise<Session> {
    return getSession(this.#scope, sessionId, options);
  }

  /**
   * All sessions, awake or asleep.
   *
   * @example
   * ```ts
   * for (const { sessionId, cwd } of await sbx.listSessions()) console.log(sessionId, cwd);
   * ```
   */
  listSessions(options: Waiting = {}): Promise<SessionInfo[]> {
    return listSessions(this.#scope, options);
  }

  /**
   * A terminal with a program on it, by default a login shell. With the id of one that runs, that one: a hundred calls
   * make one. Its output can be read from where another viewer left, and it lives on when nobody is attached.
   *
   * @example
   * ```ts
   * const term = await sbx.terminal({ id: "main", cols: 120, rows: 40 });
   * await term.write("make test; exit\r");
   * for await (const event of term) if (event.type === "output") process.stdout.write(event.bytes);
   * ```
   */
  terminal(options: TerminalOptions = {}): Promise<Terminal> {
    return openTerminal(this.#scope, options);
  }

  /**
   * Attaches to a terminal that is there, running or ended. Creates nothing.
   *
   * @example
   * ```ts
   * await using viewer = await sbx.attachTerminal("main", { readonly: true });
   * ```
   */
  attachTerminal(terminalId: string, options: AttachOptions = {}): Promise<Terminal> {
    return attachTerminal(this.#scope, terminalId, options);
  }

  /**
   * All terminals that are known, running or lately ended.
   *
   * @example
   * ```ts
   * for (const { terminalId, viewers } of await sbx.listTerminals()) console.log(terminalId, viewers);
   * ```
   */
  listTerminals(options: Waiting = {}): Promise<TerminalInfo[]> {
    return listTerminals(this.#scope, options);
  }

  /**
   * What happens to the files below a path, from now on. It begins with `ready`: who looks at the files then misses
   * nothing. After `resync` look at them again: something may have been missed. Neither wakes the sandbox nor holds it
   * awake. Reconnects by itself.
   *
   * @example
   * ```ts
   * for await (const event of sbx.watch("/workspace")) {
   *   if (event.type === "ready") await sbx.files.write("/workspace/a.txt", "changed");
   *   else if (event.type === "resync") console.log("look at all of them again");
   *   else if (event.path === "/workspace/a.txt") break;
   * }
   * ```
   */
  watch(path: string, options: WatchOptions = {}): AsyncGenerator<FileEvent> {
    return watchFiles(this.#scope, path, { ...options, signal: whileHeld(this.#scope, options.signal) });
  }

  /**
   * Begins a unit of use: until it ends, nothing reaps the sandbox. Calls of this handle are a part of the turn that it
   * began last, and renew it. The end of the last open turn removes a sandbox with `persistent: false`.
   *
   * @example
   * ```ts
   * const turn = await sbx.beginTurn();
   * await sbx.exec("npm test");
   * await turn.end();
   * ```
   */
  async beginTurn(options: BeginTurnOptions = {}): Promise<Turn> {
    const info = await beginTurn(this.#scope, options);
    const onEnd = (ended: Turn): void => {
      this.#turns = this.#turns.filter((open) => open !== ended);
    };
    const turn = new Turn({ scope: this.#scope, info, onEnd });
    this.#turns = [...this.#turns, turn];
    return turn;
  }

  /**
   * Ends a turn that was begun elsewhere. Ending it again gives the same answer.
   *
   * @example
   * ```ts
   * await sbx.endTurn(turn.turnId);
   * ```
   */
  endTurn(turnId: string, options: Waiting = {}): Promise<TurnInfo> {
    return endTurn(this.#scope, turnId, options.signal);
  }

  /**
   * Claims it for this handle alone: work of others is refused until the claim is released or ends. `claim_held` if
   * somebody else has it, unless with `takeover`. It is renewed by itself, and every call of this handle carries it.
   *
   * @example
   * ```ts
   * await using claim = await sbx.claim({ holder: "worker-7", ttlSeconds: 30 });
   * ```
   */
  async claim(options: ClaimOptions): Promise<Claim> {
    const made = await makeClaim(this.#scope, options);
    const onRelease = (released: Claim): void => {
      if (this.#claim === released) this.#claim = undefined;
    };
    this.#claim = new Claim({ scope: this.#scope, made, onRelease });
    return this.#claim;
  }

  /**
   * Copies its files as they are at one moment, running or stopped. What runs stands still for the time of the copy,
   * which is short where the file system can share blocks (XFS, Btrfs).
   *
   * @example
   * ```ts
   * const before = await sbx.snapshot({ name: "before-upgrade" });
   * const again = await Sandbox.create({ fromSnapshot: before.id });
   * ```
   */
  snapshot(options: SnapshotOptions = {}): Promise<Snapshot> {
    return makeSnapshot(this.#scope, options);
  }

  /**
   * The snapshots that were taken of it.
   *
   * @example
   * ```ts
   * for (const { name, info } of await sbx.snapshots()) console.log(name, info.sizeBytes);
   * ```
   */
  snapshots(options: Waiting = {}): Promise<Snapshot[]> {
    return snapshotsOf(this.#scope, options.signal);
  }

  /**
   * So many new sandboxes with its files, its spec and its policy, each on its own. All of them, or none.
   *
   * @example
   * ```ts
   * const [a, b, c] = await sbx.fork(3, { name: "attempt", onIdle: "remove" });   // attempt-1, attempt-2, …
   * ```
   */
  async fork(count = 1, options: ForkOptions = {}): Promise<Sandbox[]> {
    const { client } = this.#scope;
    return (await fork(this.#scope, count, options)).map((info) => Sandbox.#hold({ client, info }));
  }

  /**
   * Counts as a use, and does nothing else: idle time begins anew. Wakes nothing.
   *
   * @example
   * ```ts
   * await sbx.touch();
   * ```
   */
  async touch(options: Waiting = {}): Promise<this> {
    return this.#update(await lifecycle.act(this.#scope, "touch", options));
  }

  /**
   * Changes how it lives and ends; what is not named stays as it is.
   *
   * @example
   * ```ts
   * await sbx.update({ lifetimeSeconds: 7200, onIdle: "keep" });
   * ```
   */
  async update(change: UpdateSandbox, options: Waiting = {}): Promise<this> {
    return this.#update(await lifecycle.update(this.#scope, change, options.signal));
  }

  /**
   * Why it lives, what holds it awake, when it will be reaped, and why it last died. Wakes nothing.
   *
   * @example
   * ```ts
   * const { heldAwakeBy, reapsAt, next } = await sbx.why();
   * ```
   */
  why(options: Waiting = {}): Promise<Why> {
    return lifecycle.why(this.#scope, options.signal);
  }

  /**
   * What it uses now: CPU, memory, disk. Wakes nothing; `wrong_state` if it does not run.
   *
   * @example
   * ```ts
   * const { cpuMs, memoryBytes } = await sbx.usage();
   * ```
   */
  usage(options: UsageOptions = {}): Promise<Usage> {
    return usage(this.#scope, options);
  }

  /**
   * What it uses, sample after sample, for as long as it runs. Neither wakes it nor holds it awake.
   *
   * @example
   * ```ts
   * for await (const { cpuMs, memoryBytes } of sbx.followUsage()) {
   *   console.log(cpuMs, memoryBytes);
   *   if (cpuMs >= 0) break;
   * }
   * ```
   */
  followUsage(options: FollowUsageOptions = {}): AsyncGenerator<Usage> {
    return followUsage(this.#scope, { ...options, signal: whileHeld(this.#scope, options.signal) });
  }

  /**
   * Starts a stopped sandbox, on the same disk: a new generation. Starting a running one changes nothing.
   *
   * @example
   * ```ts
   * await sbx.start({ onProgress: ({ type }) => console.log(type) });
   * ```
   */
  async start(options: QueueOptions & ProgressOptions & Waiting = {}): Promise<this> {
    return this.#update(await lifecycle.start(this.#scope, options));
  }

  /**
   * Freezes everything that runs in it, where its provider can. Nothing is lost; the next use resumes it.
   *
   * @example
   * ```ts no-run
   * await sbx.pause();             // no cpu is used, and memory stays as it is
   * await sbx.exec("echo back");   // resumes it first
   * ```
   */
  async pause(options: Waiting = {}): Promise<this> {
    return this.#update(await lifecycle.act(this.#scope, "pause", options));
  }

  /**
   * Lets a paused sandbox run on. It starts nothing: for a stopped one there is `start`.
   *
   * @example
   * ```ts no-run
   * await (await sbx.pause()).resume();
   * ```
   */
  async resume(options: Waiting = {}): Promise<this> {
    return this.#update(await lifecycle.act(this.#scope, "resume", options));
  }

  /**
   * Ends what runs in it and keeps its disk. Stopping a stopped one changes nothing.
   *
   * @example
   * ```ts
   * await sbx.stop();
   * ```
   */
  async stop(options: Waiting = {}): Promise<this> {
    return this.#update(await lifecycle.act(this.#scope, "stop", options));
  }

  /**
   * Deletes it with its disk, and resolves when there is evidence that it is gone. `cleanup_pending` if that takes
   * longer than `waitSeconds`; the server goes on by itself.
   *
   * @example
   * ```ts
   * await sbx.delete({ waitSeconds: 10 });
   * ```
   */
  async delete(options: DeleteOptions = {}): Promise<void> {
    await lifecycle.remove(this.#scope, options);
  }

  /**
   * Asks the server for the present state.
   *
   * @example
   * ```ts
   * if ((await sbx.refresh()).state === "running") console.log("awake");
   * ```
   */
  async refresh(options: Waiting = {}): Promise<this> {
    return this.#update(await lifecycle.refresh(this.#scope, options.signal));
  }

  /**
   * Its timeline, oldest first, with the cause of every death.
   *
   * @example
   * ```ts
   * for (const { at, type, cause } of await sbx.events()) console.log(at, type, cause ?? "");
   * ```
   */
  events(options: EventOptions = {}): Promise<SandboxEvent[]> {
    return events(this.#scope, options);
  }

  /**
   * Its timeline, and what happens to it from now on, until it is deleted. Reconnects by itself.
   *
   * @example
   * ```ts
   * for await (const event of sbx.followEvents()) {
   *   console.log(event.type, event.cause);
   *   if (event.type === "live") break;
   * }
   * ```
   */
  followEvents(options: EventOptions = {}): AsyncGenerator<SandboxEvent> {
    return followEvents(this.#scope, { ...options, signal: whileHeld(this.#scope, options.signal) });
  }

  /**
   * Lets go of it: log readings and waits of this handle end, and so do the turns that it began and its claim. A
   * persistent sandbox and everything in it runs on. May be called twice, and the handle can still be used afterwards.
   *
   * @example
   * ```ts
   * await sbx.release();
   * ```
   */
  async release(options: Waiting = {}): Promise<void> {
    this.#held.abort(new DOMException("the sandbox was released", "AbortError"));
    this.#held = new AbortController();
    try {
      for (const turn of this.#turns) await turn.end(options);
      await lifecycle.act(this.#scope, "release", options).catch(unlessEnded);
    } finally {
      await this.#claim?.release(options);
    }
  }

  /** `await using` releases; it never deletes. */
  [Symbol.asyncDispose](): Promise<void> {
    return this.release();
  }

  #update(info: SandboxInfo): this {
    this.#info = info;
    return this;
  }
}

/** There is nothing to let go of any more. */
function unlessEnded(error: unknown): void {
  if (!meansEnded(error)) throw error;
}
