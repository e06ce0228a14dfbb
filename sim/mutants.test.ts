import { expect, test } from "bun:test";
import { Coverage } from "./coverage.ts";
import { type Mutant, mutants } from "./mutants.ts";
import type { RunResult } from "./run.ts";
import { runInWorkers } from "./workers.ts";

const MOST_SEEDS = 2000;
/** A change of the product moves what happens in a seed, but not everywhere. */
const NEAR = 8;

test.each(mutants.map((mutant) => [mutant.name, mutant] as const))(
  "scenario 58: caught: %s",
  async (name, mutant) => {
    const { near } = mutant;
    const failure =
      (near === undefined ? undefined : await caught(mutant, { from: near, count: NEAR })) ??
      (await caught(mutant, { from: 1, count: MOST_SEEDS }));
    process.stdout.write(`    ${name}: seed ${failure?.seed}, ${failure?.violation?.invariant}\n`);
    expect(mutant.caughtBy).toContain(failure?.violation?.invariant ?? "nothing");
  },
  600_000,
);

function caught(
  { name, scenario }: Mutant,
  seeds: { from: number; count: number },
): Promise<RunResult | undefined> {
  const totals = { seeds: 0, steps: 0, virtualMs: 0, coverage: new Coverage() };
  return runInWorkers({ ...seeds, mutant: name, scenario, totals, onProgress: () => {} });
}
