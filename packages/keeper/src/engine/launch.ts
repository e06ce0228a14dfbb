import type { Ending, Env, KillReport, Stdin } from "@holdfast/protocol";
import type { z } from "zod";
import type { Engine } from "./engine.ts";
import { environmentOf } from "./environment.ts";
import { Pump } from "./pump.ts";
import type { Run } from "./run.ts";
import { type Child, type Exit, spawn } from "./spawn.ts";
import { StdinWriter } from "./stdin.ts";
import { killTree } from "./tree.ts";

export interface Program {
  readonly argv: readonly string[];
  readonly cwd: string;
  /** Over the sandbox's own environment, a later one over an earlier. */
  readonly env: readonly (Env | undefined)[];
  /** Given: written, then closed. `open`: stays open for the run's `stdin`. `empty`: end of file at once. */
  readonly stdin: "empty" | "open" | { readonly bytes: Uint8Array };
  readonly timeoutMs?: number | undefined;
  /** See `SpawnRequest`. */
  readonly descriptor3?: number | undefined;
}

/**
 * Starts a program for a run that was just claimed, and sees to it until its end: output into the log, the timeout, a
 * cancel, the whole tree. Throws if it cannot start, and then the run is as if never asked for.
 */
export function launch(engine: Engine, run: Run, program: Program): void {
  const oomKillsBefore = engine.oom.read();
  let child: Child;
  try {
    child = spawn({
      argv: program.argv,
      cwd: program.cwd,
      env: environmentOf(engine.boot, { id: run.id, layers: program.env }),
      stdin: program.stdin === "empty" ? "empty" : "open",
      descriptor3: program.descriptor3,
    });
  } catch (error) {
    engine.abandon(run);
    throw error;
  }
  run.leader = child.ref;
  engine.records.started(run.id, child.ref.pid);
  feed(run, child, program.stdin);
  void supervise({ engine, run, child, timeoutMs: program.timeoutMs, oomKillsBefore });
}

/** The bytes of a `stdin` field. */
export function stdinBytes(stdin: z.infer<typeof Stdin>): Uint8Array {
  return typeof stdin === "string" ? Buffer.from(stdin) : Buffer.from(stdin.base64, "base64");
}

function feed(run: Run, child: Child, stdin: Program["stdin"]): void {
  if (child.stdinFd === undefined) return;
  const writer = new StdinWriter(child.stdinFd);
  if (typeof stdin === "string") {
    run.stdin = writer;
    return;
  }
  // A program need not read all of its input: that it did not is no failure of the run.
  const close = () => writer.close();
  void writer.write(stdin.bytes).then(close, close);
  void run.finished.then(() => writer.abort());
}

interface Supervision {
  readonly engine: Engine;
  readonly run: Run;
  readonly child: Child;
  readonly timeoutMs: number | undefined;
  readonly oomKillsBefore: number | undefined;
}

// A leader that is still there this long after its tree was killed cannot be killed: it is reported as a survivor.
const UNKILLABLE_MS = 500;

async function supervise({ engine, run, child, timeoutMs, oomKillsBefore }: Supervision): Promise<void> {
  const room = () => run.log.room();
  const pumps = [
    new Pump(child.stdout, { take: (...pieces) => run.write("stdout", ...pieces), room }),
    new Pump(child.stderr, { take: (...pieces) => run.write("stderr", ...pieces), room }),
  ];
  const forced = new ForcedEnd(run, child);
  const timer = timeoutMs === undefined ? undefined : setTimeout(() => forced.begin("timeout"), timeoutMs);
  run.onCancel(() => forced.begin("cancel"));
  const exit = await Promise.race([child.exited, forced.gaveUp]);
  clearTimeout(timer);
  const kill = await forced.report;
  await Promise.all(pumps.map((pump) => pump.settle()));
  run.stdin?.abort();
  const wasOom = exit.signal === "SIGKILL" && kill === undefined;
  const oomKilled = wasOom && (engine.oom.read() ?? 0) > (oomKillsBefore ?? 0);
  run.finish(endingOf({ exit, because: forced.because, oomKilled, kill }), { at: engine.now });
}

/** The end by timeout or cancel: whichever comes first, once. */
class ForcedEnd {
  because: "timeout" | "cancel" | undefined;
  report: Promise<KillReport> | undefined;
  readonly gaveUp: Promise<Exit>;
  readonly #run: Run;
  readonly #child: Child;
  #giveUp: (exit: Exit) => void = () => {};

  constructor(run: Run, child: Child) {
    this.#run = run;
    this.#child = child;
    this.gaveUp = new Promise((resolve) => {
      this.#giveUp = resolve;
    });
  }

  begin(because: "timeout" | "cancel"): void {
    if (this.because !== undefined) return;
    this.because = because;
    this.report = killTree({ leader: this.#child.ref, marker: this.#run.id });
    void this.#giveUpAfter(this.report);
  }

  async #giveUpAfter(report: Promise<KillReport>): Promise<void> {
    await report;
    await Bun.sleep(UNKILLABLE_MS);
    this.#giveUp({ exitCode: 137, signal: "SIGKILL" });
  }
}

function endingOf(facts: {
  exit: Exit;
  because: "timeout" | "cancel" | undefined;
  oomKilled: boolean;
  kill: KillReport | undefined;
}): Ending {
  const { exit, because, oomKilled, kill } = facts;
  const timedOut = because === "timeout";
  return {
    exitCode: timedOut ? 124 : exit.exitCode,
    signal: exit.signal,
    timedOut,
    cancelled: because === "cancel",
    oomKilled,
    ...(kill !== undefined && { kill }),
  };
}
