import {
  type Command,
  DEFAULT_TERMINAL_SIZE,
  HoldfastError,
  type KeeperBoot,
  type TerminalCreated,
  type TerminalExit,
  type Terminal as TerminalFacts,
  type TerminalRequest,
  type TerminalSize,
} from "@holdfast/protocol";
import { environmentOf } from "../engine/environment.ts";
import { randomHex } from "../engine/ids.ts";
import { signalExactly } from "../engine/proc-table.ts";
import { argvOf, type Shell } from "../engine/shell.ts";
import { checkCwd } from "../engine/spawn.ts";
import { killTree } from "../engine/tree.ts";
import type { UseClock } from "../engine/use-clock.ts";
import { checkProgram, loginShell, onTerminal } from "./shells.ts";
import { Terminal } from "./terminal.ts";
import { realTimers, type Timers } from "./timers.ts";
import { Turns } from "./turns.ts";

const TERM = "xterm-256color";
// Each running one takes five descriptors and up to 1 MiB; a person has a dozen, a mistake in a loop has thousands.
const MAX_RUNNING = 256;
// An ended one keeps its record and its last screen until this many others have ended after it.
const ENDED_KEPT = 20;

/** What terminals need of the sandbox around them; the engine has it. */
export interface TerminalHost {
  readonly boot: KeeperBoot;
  readonly shell: Shell | undefined;
  readonly use: UseClock;
}

interface Entry {
  readonly terminal: Terminal;
  readonly request: TerminalRequest;
  destroying?: Promise<TerminalFacts>;
}

/** All terminals of this sandbox, running and lately ended. */
export class Terminals {
  readonly #host: TerminalHost;
  readonly #timers: Timers;
  readonly #turns: Turns;
  readonly #entries = new Map<string, Entry>();

  constructor(host: TerminalHost, timers: Timers = realTimers) {
    this.#host = host;
    this.#timers = timers;
    this.#turns = new Turns(timers);
  }

  /** Those that hold off the reaper: somebody who may write is attached, and answers. */
  get attached(): string[] {
    const held = this.list().filter(({ writers, state }) => writers > 0 && state === "running");
    return held.map(({ terminalId }) => terminalId);
  }

  /**
   * The running terminal of that id, or a new one. Nothing is awaited between the look and the start, so a hundred
   * calls at once make one PTY; only a terminal that is just being destroyed is waited for.
   */
  async getOrCreate(request: TerminalRequest): Promise<TerminalCreated> {
    const id = request.id ?? `term-${randomHex(6)}`;
    await this.#entries.get(id)?.destroying;
    const found = this.#entries.get(id);
    if (found?.destroying !== undefined) return this.getOrCreate(request);
    if (found !== undefined && found.terminal.exit === undefined) return this.#join(found, request);
    const created = this.#create(id, request);
    const { exit, ptyId } = found?.terminal ?? {};
    const replaced = exit !== undefined && ptyId !== undefined ? { ptyId, exit } : undefined;
    return { ...created.facts(), created: true, ...(replaced !== undefined && { replaced }) };
  }

  get(id: string): Terminal {
    const entry = this.#entries.get(id);
    if (entry === undefined) throw unknown(id);
    return entry.terminal;
  }

  list(): TerminalFacts[] {
    return [...this.#entries.values()].map(({ terminal }) => terminal.facts());
  }

  /** Ends the program with everything it started, and forgets the terminal. Several callers get the one answer. */
  async destroy(id: string, cause: TerminalExit["cause"] = "destroyed"): Promise<TerminalFacts> {
    const entry = this.#entries.get(id);
    if (entry === undefined) throw unknown(id);
    entry.destroying ??= this.#end(entry, cause).finally(() => this.#entries.delete(id));
    return entry.destroying;
  }

  /** Ends them all: the instance is being stopped. */
  async close(): Promise<void> {
    await Promise.all([...this.#entries.keys()].map((id) => this.destroy(id, "keeper_stopped")));
  }

  #join({ terminal, request: first }: Entry, request: TerminalRequest): TerminalCreated {
    const different = (["command", "cwd", "env"] as const).filter(
      (key) => request[key] !== undefined && !Bun.deepEquals(request[key], first[key]),
    );
    if (different.length > 0) throw otherProgram(terminal.facts(), different);
    if (request.graceSeconds !== undefined) terminal.setGrace(request.graceSeconds);
    const { cols, rows } = terminal.facts();
    const size = sizeOf(request, { cols, rows });
    if (size.cols !== cols || size.rows !== rows) terminal.resize(size);
    return { ...terminal.facts(), created: false };
  }

  #create(terminalId: string, request: TerminalRequest): Terminal {
    this.#checkRoom();
    const ptyId = `pty-${randomHex(8)}`;
    const env = environmentOf(this.#host.boot, { id: ptyId, layers: [{ TERM }, request.env] });
    const { command, argv } = this.#program(request.command, env);
    const cwd = request.cwd ?? this.#host.boot.cwd;
    checkCwd(cwd);
    checkProgram({ argv, cwd, env });
    const terminal = new Terminal({
      terminalId,
      ptyId,
      command,
      wrapper: onTerminal(argv, this.#host.shell),
      cwd,
      env,
      size: sizeOf(request, DEFAULT_TERMINAL_SIZE),
      graceSeconds: request.graceSeconds ?? null,
      timers: this.#timers,
      turns: this.#turns,
      use: this.#host.use,
      onGraceOver: () => void this.destroy(terminalId, "grace_over"),
      onExit: () => this.#forgetOldest(),
    });
    // Set anew, not in the old one's place: the order is that of their start.
    this.#entries.delete(terminalId);
    this.#entries.set(terminalId, { terminal, request });
    return terminal;
  }

  #program(asked: Command | undefined, env: Record<string, string>): { command: Command; argv: string[] } {
    if (asked !== undefined) return { command: asked, argv: argvOf(asked, this.#host.shell).argv };
    const argv = loginShell(env, this.#host.shell);
    return { command: argv, argv };
  }

  async #end({ terminal }: Entry, cause: TerminalExit["cause"]): Promise<TerminalFacts> {
    const { leader, ptyId } = terminal;
    terminal.endBecause(cause);
    // A shell at its prompt ignores SIGTERM; a hang-up it takes as a reason to save its history and go.
    signalExactly(leader, "SIGHUP");
    const kill = await killTree({ leader, marker: ptyId });
    if (kill.survivors.length > 0) terminal.abandon();
    await terminal.ended;
    return { ...terminal.facts(), kill };
  }

  #checkRoom(): void {
    const running = this.list().filter(({ state }) => state === "running").length;
    if (running < MAX_RUNNING) return;
    throw new HoldfastError("limit_reached", `this sandbox already runs ${MAX_RUNNING} terminals`, {
      started: "no",
      hint: "destroy those that nobody needs, or give new ones a grace after which they end",
    });
  }

  #forgetOldest(): void {
    const ended = [...this.#entries].filter(([, { terminal }]) => terminal.exit !== undefined);
    for (const [id] of ended.slice(0, Math.max(0, ended.length - ENDED_KEPT))) this.#entries.delete(id);
  }
}

function sizeOf(request: TerminalRequest, otherwise: TerminalSize): TerminalSize {
  return { cols: request.cols ?? otherwise.cols, rows: request.rows ?? otherwise.rows };
}

function unknown(id: string): HoldfastError {
  return new HoldfastError("not_found", `there is no terminal ${id}`, {
    hint: "list the terminals; one that ended is forgotten after a while, and none outlives its instance",
  });
}

function otherProgram(terminal: TerminalFacts, different: readonly string[]): HoldfastError {
  const { terminalId, command, cwd } = terminal;
  return new HoldfastError(
    "already_exists",
    `terminal ${terminalId} is running with another ${different.join(" and ")}`,
    {
      started: "no",
      details: { terminalId, command, cwd, different },
      hint: "leave those out to attach to it as it is, choose another id, or destroy it first",
    },
  );
}
