import { expect, test } from "bun:test";
import { Coverage } from "./coverage.ts";
import { mutants } from "./mutants.ts";
import { runInWorkers } from "./workers.ts";

test.each(mutants.map((mutant) => [mutant.name, mutant] as const))(
  "scenario 58: caught: %s",
  async (name, mutant) => {
    const totals = { seeds: 0, steps: 0, virtualMs: 0, coverage: new Coverage() };
    const failure = await runInWorkers({ from: 1, count: 2000, mutant: name, totals, onProgress: () => {} });
    process.stdout.write(`    ${name}: seed ${failure?.seed}, ${failure?.violation?.invariant}\n`);
    expect(mutant.caughtBy).toContain(failure?.violation?.invariant ?? "nothing");
  },
  600_000,
);
