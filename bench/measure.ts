import { closeSync, openSync, unlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

/** Who is measured: we, the least that the work can cost on this machine, or what somebody would use instead of us. */
export type Role = "ours" | "floor" | "peer";

/** One way of doing the work. It checks its own answer and throws if that is wrong: a fast wrong answer is a failure. */
export interface Contender {
  readonly role: Role;
  readonly name: string;
  /** Resolves when the work is done; with `ms`, if the contender knows better what that took. */
  run(): Promise<unknown>;
  /** After each call, not measured: what it has made may go. */
  tidy?(): Promise<unknown>;
}

/** Of one contender's samples. `spread` is the distance of the quartiles, as a part of the median. */
export interface Summary {
  readonly p50: number;
  readonly p95: number;
  readonly p99: number;
  readonly spread: number;
  readonly count: number;
}

export interface Turns {
  readonly rounds: number;
  /** No round begins after it, once there were three: a slow contender makes fewer samples, not a longer run. */
  readonly atMostSeconds?: number;
  /** Rounds before those that count, so that all code is loaded. */
  readonly warmUps?: number;
  /** Before each call. */
  readonly pauseMs?: number;
  /** Several calls of one contender after each other, and a rest before them, where a call leaves work behind that would be counted as the next one's. */
  readonly callsInARow?: number;
  readonly restMs?: number;
  readonly signal: AbortSignal;
}

/** How quiet the machine was: the same arithmetic, the same bare spawn and a new file, once in each round. */
export interface Noise {
  readonly spin: Summary;
  readonly spawn: Summary;
  readonly file: Summary;
}

/**
 * Takes turns: one round of each contender, again and again, so that whatever else the machine does meanwhile hits all
 * of them alike.
 */
export async function takeTurns(
  contenders: readonly Contender[],
  turns: Turns,
): Promise<{ summaries: Summary[]; noise: Noise }> {
  const { warmUps = 3, callsInARow = 1, restMs, signal } = turns;
  const samples = contenders.map((): number[] => []);
  const noise = { spin: [] as number[], spawn: [] as number[], file: [] as number[] };
  for (let i = 0; i < warmUps; i++) for (const contender of contenders) await once(contender, turns);
  const until = performance.now() + (turns.atMostSeconds ?? 60) * 1000;
  for (let round = 0; round < turns.rounds && (round < 3 || performance.now() < until); round++) {
    noise.spin.push(spin());
    noise.spawn.push(
      await timed(() => Bun.spawn(["true"], { stdio: ["ignore", "ignore", "ignore"] }).exited),
    );
    noise.file.push(makeFile());
    for (const [i, contender] of contenders.entries()) {
      if (restMs !== undefined) await Bun.sleep(restMs);
      for (let call = 0; call < callsInARow; call++) samples[i]?.push(await once(contender, turns));
    }
    signal.throwIfAborted();
  }
  return {
    summaries: samples.map(summaryOf),
    noise: { spin: summaryOf(noise.spin), spawn: summaryOf(noise.spawn), file: summaryOf(noise.file) },
  };
}

async function once(contender: Contender, { pauseMs, signal }: Turns): Promise<number> {
  signal.throwIfAborted();
  if (pauseMs !== undefined) await Bun.sleep(pauseMs);
  const before = performance.now();
  const result = await contender.run();
  const took = performance.now() - before;
  await contender.tidy?.();
  return isTime(result) ? result.ms : took;
}

function isTime(result: unknown): result is { ms: number } {
  return typeof result === "object" && result !== null && "ms" in result && typeof result.ms === "number";
}

/** Calls per second with so many callers, each of which begins the next when its last is answered. */
export async function rate(
  work: () => Promise<unknown>,
  options: { callers: number; seconds: number },
): Promise<number> {
  const begun = performance.now();
  const until = begun + options.seconds * 1000;
  let calls = 0;
  const caller = async () => {
    while (performance.now() < until) {
      await work();
      calls++;
    }
  };
  await Promise.all(Array.from({ length: options.callers }, caller));
  return (calls * 1000) / (performance.now() - begun);
}

/** So many at a time until all are done; ms. */
export function timedEach(
  n: number,
  atATime: number,
  work: (i: number) => Promise<unknown>,
): Promise<number> {
  const numbers = Array.from({ length: n }, (_, i) => i).values();
  const worker = async () => {
    for (const i of numbers) await work(i);
  };
  return timed(() => Promise.all(Array.from({ length: Math.min(n, atATime) }, worker)));
}

export async function timed(work: () => Promise<unknown>): Promise<number> {
  const before = performance.now();
  await work();
  return performance.now() - before;
}

export function summaryOf(samples: readonly number[]): Summary {
  const sorted = [...samples].sort((a, b) => a - b);
  const at = (part: number) => sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * part))] ?? 0;
  const p50 = at(0.5);
  const spread = p50 === 0 ? 0 : (at(0.75) - at(0.25)) / p50;
  return { p50, p95: at(0.95), p99: at(0.99), spread, count: sorted.length };
}

/** Hundredths of a ms on most disks. An ext4 without a journal looks past every file that was deleted lately. */
function makeFile(): number {
  const path = join(tmpdir(), `holdfast-bench-${process.pid}`);
  const before = performance.now();
  closeSync(openSync(path, "wx"));
  const took = performance.now() - before;
  unlinkSync(path);
  return took;
}

let sink = 0;

/** About 1 ms of arithmetic. What it takes longer than usual, somebody else had the core. */
function spin(): number {
  const before = performance.now();
  for (let i = 0; i < 500_000; i++) sink = (sink * 31 + i) | 0;
  return performance.now() - before;
}
