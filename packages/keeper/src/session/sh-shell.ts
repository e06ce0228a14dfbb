import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Stream } from "../engine/log-writer.ts";
import { type ProcessRef, signalExactly } from "../engine/proc-table.ts";
import { cwdOf } from "./cwd.ts";
import type { Report } from "./reports.ts";
import type { Rebuilt, SavedState, SessionShell, ShellEnd, ShellOrder } from "./session-shell.ts";
import { ShellLink } from "./shell-link.ts";
import { endOf, type ShellProcess, spawnShell } from "./shell-process.ts";

export interface ShOptions {
  readonly path: string;
  /** A directory of this session's alone. */
  readonly dir: string;
  readonly cwd: string;
  readonly env: Record<string, string>;
  /** Names in `env` whose values are not written down with the state as long as they are unchanged. */
  readonly injected: readonly string[];
  readonly output: (stream: Stream, bytes: Uint8Array) => void;
}

const ANSWER_MS = 5_000;
const EXIT_TRAP_MS = 1_000;
const QUIETLY = ">/dev/null 2>&1";
// Such a shell knows descriptors of one digit only: 6 and 7 are the session's output, 8 reports, 9 dumps.
const MOVE_DESCRIPTORS = "exec 6>&1 7>&2 8>&3 9>&5 3>&- 4<&- 5>&-";
// `command`, so that an error of syntax does not end the shell; in a condition, so that a failure does not; the text
// itself still feels `set -e`, because it is a file of its own.
const EVALUATE =
  'if command . "$__hf_d/text" <"$__hf_i" >&6 2>&7 6>&- 7>&- 8>&- 9>&-; then __hf_rc=0; else __hf_rc=$?; fi';
// Each of these prints what brings it back when it is read.
const DUMP = "{ command set; command export -p; command readonly -p; command trap; command set +o; } >&9";
const SAVE = `${DUMP}; command printf 'umask %s\\n' "$(command umask)" >&9; command printf 'K %s\\n' "$__hf_n" >&8`;

/**
 * A persistent POSIX shell, for a sandbox without bash. It has no savepoint: after each command it writes down what it
 * can, and a shell that died is started anew with that. Functions, aliases and positional parameters do not survive.
 */
export class ShShell implements SessionShell {
  readonly helpers: readonly ProcessRef[] = [];
  readonly #options: ShOptions;
  readonly #link: ShellLink;
  #n = 0;
  #status = 0;
  #main: ShellProcess | undefined;
  #saved: SavedState | undefined;
  #closed = false;

  constructor(options: ShOptions) {
    this.#options = options;
    mkdirSync(options.dir, { recursive: true, mode: 0o700 });
    this.#link = new ShellLink({ output: options.output, report: (report) => this.#hear(report) });
  }

  get main(): ProcessRef | undefined {
    return this.#main?.ref;
  }

  get alive(): boolean {
    return this.#main?.isAlive === true;
  }

  get commands(): number {
    return this.#saved?.commands ?? 0;
  }

  async start(saved: SavedState | undefined): Promise<void> {
    this.#link.renewFeed();
    this.#n = saved?.commands ?? 0;
    this.#status = 0;
    const { path, dir, cwd, env } = this.#options;
    this.#main?.release();
    this.#main = spawnShell({ cmd: [path], argv0: "sh", cwd, env, stdio: this.#link.descriptors });
    this.#link.feed(MOVE_DESCRIPTORS);
    if (saved !== undefined) {
      this.#write("state", saved.state);
      this.#link.feed(`{ command . ${shWord(join(dir, "state"))}; } ${QUIETLY}`);
    }
    this.#link.takeDump();
    this.#link.feed(`__hf_d=${shWord(dir)} __hf_n=${this.#n}; { ${SAVE}; } ${QUIETLY}`);
    if (!(await this.settle())) throw new Error("the shell did not start");
  }

  async run(order: ShellOrder): Promise<ShellEnd> {
    const { dir } = this.#options;
    this.#write("text", order.text);
    if (order.stdin !== undefined) this.#write("stdin", order.stdin);
    this.#n += 1;
    const { reports } = this.#link;
    this.#link.takeDump();
    const over = Promise.withResolvers<ShellEnd>();
    reports.expect("E", this.#n, (status) => over.resolve({ how: "ended", status }));
    this.#link.feed(...linesOf(order, { dir, n: this.#n, status: this.#status }));
    const end = await endOf(over, { main: this.#main, link: this.#link });
    this.#link.drainOutput();
    reports.forget("E", this.#n);
    if (end.how === "ended") this.#status = end.status;
    return end;
  }

  async settle(): Promise<boolean> {
    if (this.#saved?.commands !== this.#n)
      await this.#link.reports.within(ANSWER_MS, "K", this.#n, this.#main);
    return this.#saved?.commands === this.#n;
  }

  async rebuild(fallback: () => SavedState | undefined): Promise<Rebuilt> {
    if (this.#main !== undefined) signalExactly(this.#main.ref, "SIGKILL");
    await this.#main?.endedWithin(ANSWER_MS);
    const inMemory = this.#saved;
    const saved = inMemory ?? fallback();
    this.#saved = undefined;
    await this.start(saved);
    const from = inMemory !== undefined ? "savepoint" : saved !== undefined ? "checkpoint" : "nothing";
    return { from, behind: 0 };
  }

  async dump(): Promise<SavedState | undefined> {
    return this.#saved;
  }

  async exit(): Promise<void> {
    if (this.#main === undefined || this.#closed) return;
    this.#link.feed("exit 0");
    await this.#main.endedWithin(EXIT_TRAP_MS);
  }

  close(): void {
    if (this.#closed) return;
    this.#closed = true;
    if (this.#main !== undefined) signalExactly(this.#main.ref, "SIGKILL");
    this.#main?.release();
    this.#link.close();
  }

  #hear({ kind, n }: Report): void {
    if (kind !== "K" || this.#main === undefined) return;
    const cwd = cwdOf(this.#main.ref.pid)?.path ?? this.#options.cwd;
    const state = Buffer.concat([this.#link.takeDump(), Buffer.from(`cd -- ${shWord(cwd)}\n`)]);
    this.#saved = { state: this.#withoutInjected(state), commands: n };
  }

  /** See injected-values.ts. Such a shell quotes in one way only, so a value is known by how it is written. */
  #withoutInjected(state: Buffer): Buffer {
    let text = `\n${state.toString("latin1")}`;
    for (const name of this.#options.injected) {
      const value = Buffer.from(quoted(this.#options.env[name] ?? "")).toString("latin1");
      for (const before of ["", "export "]) text = text.replaceAll(`\n${before}${name}=${value}\n`, "\n:\n");
    }
    return Buffer.from(text, "latin1");
  }

  #write(name: string, content: string | Uint8Array): void {
    writeFileSync(join(this.#options.dir, name), content, { mode: 0o600 });
  }
}

function linesOf(order: ShellOrder, facts: { dir: string; n: number; status: number }): string[] {
  const input = order.stdin === undefined ? "/dev/null" : shWord(join(facts.dir, "stdin"));
  const cd = order.cd === undefined ? "" : ` command cd -- ${shWord(order.cd)};`;
  const set = `__hf_n=${facts.n} __hf_rc= __hf_i=${input} HOLDFAST_COMMAND=${order.marker}; export HOLDFAST_COMMAND;`;
  const status =
    facts.status === 0 ? ":;" : `__hf_ret() { unset -f __hf_ret; return ${facts.status}; }; __hf_ret ||`;
  return [
    `{ ${set}${cd} ${status} ${EVALUATE}; } ${QUIETLY}`,
    `{ command printf 'E %s %s\\n' "$__hf_n" "\${__hf_rc:-$?}" >&8; ${SAVE}; } ${QUIETLY}`,
  ];
}

/** Any text as one word of a POSIX shell. */
export function shWord(text: string): string {
  return `'${text.replaceAll("'", "'\\''")}'`;
}

/** As `set` writes a value. */
function quoted(value: string): string {
  return `'${value.replaceAll("'", "'\"'\"'")}'`;
}
