import type { Coverage } from "./coverage.ts";
import { type RunResult, runSeed } from "./run.ts";

const unhandled: unknown[] = [];
let isListening = false;

/** One seed, and whether anything in it was left to nobody: a real server would have died of that. */
export async function judgeSeed(
  seed: number,
  options: { print?: (line: string) => void } = {},
): Promise<RunResult> {
  if (!isListening) process.on("unhandledRejection", (error) => unhandled.push(error));
  isListening = true;
  const result = runSeed(seed, options);
  await new Promise((resolve) => setImmediate(resolve));
  const [first] = unhandled.splice(0);
  if (first === undefined || result.violation !== undefined) return result;
  const what = first instanceof Error ? (first.stack ?? first.message) : String(first);
  return { ...result, violation: { invariant: "unhandled", what } };
}

/** For people: what broke, the way there, and the one command that shows it again. */
export function explain({ seed, violation, tail }: RunResult, command: string): string {
  if (violation === undefined) return `seed ${seed}: every invariant holds`;
  return [
    ...tail,
    "",
    `seed ${seed} breaks ${violation.invariant}: ${violation.what}`,
    `replay: ${command}`,
  ].join("\n");
}

export interface Totals {
  seeds: number;
  steps: number;
  virtualMs: number;
  readonly coverage: Coverage;
}

export function addTo(totals: Totals, { steps, virtualMs, counts }: Omit<RunResult, "hash" | "tail">): void {
  totals.seeds++;
  totals.steps += steps;
  totals.virtualMs += virtualMs;
  totals.coverage.add(counts);
}
