import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Stream } from "../engine/log-writer.ts";
import { isAlive, type ProcessRef, signalExactly } from "../engine/proc-table.ts";
import {
  command,
  commandParts,
  declarationsOf,
  definitions,
  EXIT,
  MOVE_DESCRIPTORS,
  RESTORE,
  save,
} from "./bash-lines.ts";
import { CommandMemory } from "./command-memory.ts";
import { InjectedValues } from "./injected-values.ts";
import type { Report } from "./reports.ts";
import type { Rebuilt, SavedState, SessionShell, ShellEnd, ShellOrder } from "./session-shell.ts";
import shellCode from "./shell.bash" with { type: "text" };
import { ShellLink } from "./shell-link.ts";
import { endOf, refOf, ShellProcess, spawnShell } from "./shell-process.ts";

export interface BashOptions {
  /** Of the bash program. */
  readonly path: string;
  /** A directory of this session's alone. */
  readonly dir: string;
  readonly cwd: string;
  readonly env: Record<string, string>;
  /** Names in `env` whose values are not written down with the state as long as they are unchanged. */
  readonly injected: readonly string[];
  /** The value of the engine's marker in the environment of a shell that takes over. */
  readonly marker: string;
  readonly output: (stream: Stream, bytes: Uint8Array) => void;
}

interface Savepoint {
  readonly n: number;
  readonly ref: ProcessRef;
}

// A start, a fork or a dump takes milliseconds. What takes this long is not coming.
const ANSWER_MS = 5_000;
// How long a savepoint may lag behind the report of its command when the shell died in between.
const LATE_SAVEPOINT_MS = 200;
// A dump takes some milliseconds, with a thousand variables some tens. The order for it may be read by the savepoint of
// the next command, which has just begun to read, too: then it is given again.
const DUMP_MS = 1_000;
const DUMP_TRIES = 3;
const EXIT_TRAP_MS = 1_000;

/** A persistent bash; shell.bash is its other half. A savepoint, a fork of it, holds the state after each command. */
export class BashShell implements SessionShell {
  readonly #options: BashOptions;
  readonly #link: ShellLink;
  #memory = new CommandMemory();
  readonly #injected = new InjectedValues();
  /** The number of the last command; reports carry it. */
  #n = 0;
  /** The last one that ended by itself: the state must be had as it was after this one. */
  #ended = 0;
  #status = 0;
  #main: ShellProcess | undefined;
  #savepoint: Savepoint | undefined;
  #dumpingFrom: Savepoint | undefined;
  /** The last savepoints that were told to go; they may still be going. */
  #retired: ProcessRef[] = [];
  /** Once a savepoint, now the parent of the shell that took over, whose end it reports. */
  #waiter: ProcessRef | undefined;
  /** One dump after another: they share a pipe. */
  #dumped: Promise<SavedState | undefined> = Promise.resolve(undefined);
  #closed = false;

  constructor(options: BashOptions) {
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

  get helpers(): readonly ProcessRef[] {
    return [this.#waiter, this.#savepoint?.ref].filter((ref) => ref !== undefined);
  }

  get commands(): number {
    return this.#ended;
  }

  async start(saved: SavedState | undefined): Promise<void> {
    this.#clearAway();
    this.#n = saved?.commands ?? 0;
    this.#ended = this.#n;
    this.#status = 0;
    this.#spawn();
    this.#link.feed(MOVE_DESCRIPTORS);
    this.#define();
    await this.#learnInjected();
    await this.#restore(saved?.state);
  }

  async run(order: ShellOrder): Promise<ShellEnd> {
    const { reports } = this.#link;
    if (order.stdin !== undefined) this.#write("stdin", order.stdin);
    const n = this.#n + 1;
    this.#n = n;
    const over = Promise.withResolvers<ShellEnd>();
    let unread = false;
    reports.expect("X", n, () => {
      unread = true;
    });
    reports.expect("E", n, (status) => over.resolve(unread ? { how: "unread" } : { how: "ended", status }));
    this.#begin(n, order);
    const end = await endOf(over, { main: this.#main, link: this.#link });
    this.#link.drainOutput();
    for (const kind of ["X", "E"]) reports.forget(kind, n);
    if (end.how === "ended") this.#status = end.status;
    if (end.how === "ended" || end.how === "unread") this.#ended = n;
    return end;
  }

  async settle(): Promise<boolean> {
    return this.#savepointOf(this.#ended, { withinMs: ANSWER_MS, unless: this.#main });
  }

  async rebuild(fallback: () => SavedState | undefined): Promise<Rebuilt> {
    const wanted = this.#ended;
    await this.#endMain();
    await this.#savepointOf(wanted, { withinMs: LATE_SAVEPOINT_MS });
    const dumped = await this.dump();
    if (dumped !== undefined && (await this.#takeOver(dumped)))
      return { from: "savepoint", behind: wanted - this.#ended };
    const saved = dumped ?? fallback();
    await this.start(saved);
    const from = dumped !== undefined ? "savepoint" : saved !== undefined ? "checkpoint" : "nothing";
    return { from, behind: wanted - this.#ended };
  }

  dump(): Promise<SavedState | undefined> {
    this.#dumped = this.#dumped.then(() => this.#dumpNow());
    return this.#dumped;
  }

  async exit(): Promise<void> {
    if (this.#main === undefined || this.#closed) return;
    this.#begin(this.#n + 1, { text: EXIT, marker: this.#options.marker });
    await this.#main.endedWithin(EXIT_TRAP_MS);
  }

  close(): void {
    if (this.#closed) return;
    this.#closed = true;
    for (const ref of [...this.helpers, this.main]) if (ref !== undefined) signalExactly(ref, "SIGKILL");
    this.#main?.release();
    this.#link.close();
    this.#memory.close();
  }

  #begin(n: number, order: ShellOrder): void {
    this.#memory.put(commandParts(order, { dir: this.#options.dir, n, status: this.#status }));
    this.#link.feedExactly(command(n));
  }

  #spawn(): void {
    const { path, cwd, env } = this.#options;
    const cmd = [path, "--noprofile", "--norc", "-p"];
    const stdio: Parameters<typeof spawnShell>[0]["stdio"] = [...this.#link.descriptors, this.#memory.fd];
    this.#main = spawnShell({ cmd, argv0: "bash", cwd, env, stdio });
  }

  #define(): void {
    const { path, dir, env, marker } = this.#options;
    this.#write("shell", shellCode);
    this.#link.feed(...definitions({ dir, bash: path, marker, n: this.#n, envNames: Object.keys(env) }));
  }

  async #learnInjected(): Promise<void> {
    const { injected } = this.#options;
    if (injected.length === 0) return;
    this.#link.takeDump();
    this.#link.feed(declarationsOf(injected));
    const told = await this.#link.reports.within(ANSWER_MS, "K", this.#n, this.#main);
    if (told === undefined) throw new Error("the shell did not start");
    this.#injected.learn(this.#link.takeDump());
  }

  async #dumpNow(): Promise<SavedState | undefined> {
    for (let tries = 0; tries < DUMP_TRIES && !this.#closed; tries++) {
      const savepoint = this.#savepoint;
      if (savepoint === undefined || !isAlive(savepoint.ref)) return undefined;
      this.#link.takeDump(); // what a savepoint left that died in the middle of one
      this.#dumpingFrom = savepoint;
      const complete = await this.#orderDump(savepoint.n);
      this.#dumpingFrom = undefined;
      if (this.#savepoint !== savepoint) this.#retire(savepoint);
      if (complete)
        return { state: this.#injected.withoutThem(this.#link.takeDump()), commands: savepoint.n };
    }
    return undefined;
  }

  async #orderDump(n: number): Promise<boolean> {
    await this.#retiredAreGone();
    const dumped = this.#link.reports.within(DUMP_MS, "K", n);
    this.#link.order(`dump ${n}`);
    return (await dumped) !== undefined && !this.#closed;
  }

  async #restore(state: Buffer | undefined): Promise<void> {
    let restored = state === undefined;
    if (state !== undefined) {
      this.#write("state", state);
      this.#link.reports.expect("R", this.#n, () => {
        restored = true;
      });
      this.#link.feed(...RESTORE);
    }
    this.#link.feedExactly(save(this.#n));
    const settled = await this.settle();
    this.#link.reports.forget("R", this.#n);
    if (!settled || !restored) throw new Error("the shell did not start");
  }

  async #endMain(): Promise<void> {
    const main = this.#main;
    if (main === undefined) return;
    signalExactly(main.ref, "SIGKILL");
    await main.endedWithin(LATE_SAVEPOINT_MS);
    main.release();
    this.#main = undefined;
  }

  /**
   * The newest savepoint becomes the shell, and keeps what no dump can carry: its limits and its descriptors of files.
   * False if it is dead, too.
   */
  async #takeOver({ state }: SavedState): Promise<boolean> {
    const savepoint = this.#savepoint;
    if (savepoint === undefined) return false;
    this.#n = savepoint.n;
    this.#ended = savepoint.n;
    this.#savepoint = undefined;
    this.#link.discardFeed();
    try {
      await this.#letTakeOver(savepoint);
      this.#define();
      await this.#restore(state);
      return true;
    } catch {
      signalExactly(savepoint.ref, "SIGKILL");
      await this.#endMain();
      return false;
    }
  }

  async #letTakeOver({ n, ref }: Savepoint): Promise<void> {
    this.#link.order(`go ${n}`);
    const pid = await this.#link.reports.within(ANSWER_MS, "T", n);
    if (pid === undefined) throw new Error("the savepoint did not take over");
    this.#waiter = ref;
    this.#main = new ShellProcess(refOf(pid));
  }

  /** Whatever is left of an earlier shell, and whatever jobs of it may still read of. */
  #clearAway(): void {
    for (const ref of [...this.helpers, this.main]) if (ref !== undefined) signalExactly(ref, "SIGKILL");
    this.#main?.release();
    this.#main = undefined;
    this.#savepoint = undefined;
    this.#waiter = undefined;
    this.#link.renewFeed();
    this.#memory.close();
    if (!this.#closed) this.#memory = new CommandMemory();
    this.#link.discardOrders();
  }

  async #savepointOf(
    n: number,
    wait: { withinMs: number; unless?: ShellProcess | undefined },
  ): Promise<boolean> {
    if (this.#savepoint?.n !== n) await this.#link.reports.within(wait.withinMs, "S", n, wait.unless);
    return this.#savepoint?.n === n;
  }

  #hear({ kind, n, value }: Report): void {
    if (kind === "S") this.#newSavepoint({ n, ref: refOf(value) });
    if (kind === "D") this.#main?.ended({ how: "died", exitCode: value, signal: null });
  }

  /** Replaces the one before, which has nothing left to do. */
  #newSavepoint(savepoint: Savepoint): void {
    const old = this.#savepoint;
    this.#savepoint = savepoint;
    if (old === undefined || old === this.#dumpingFrom) return;
    setImmediate(() => this.#retire(old)); // not now: whoever waits for this savepoint goes on first
  }

  #retire({ ref }: Savepoint): void {
    signalExactly(ref, "SIGKILL");
    this.#retired = [...this.#retired.slice(-2), ref];
  }

  /**
   * A process that was killed while it waits for an order is still given the next one if that comes before it has
   * died, which takes a moment on a busy machine.
   */
  async #retiredAreGone(): Promise<void> {
    const deadline = performance.now() + DUMP_MS;
    while (this.#retired.some(isAlive) && performance.now() < deadline) await Bun.sleep(1);
    this.#retired = [];
  }

  #write(name: string, content: string | Uint8Array): void {
    writeFileSync(join(this.#options.dir, name), content, { mode: 0o600 });
  }
}
