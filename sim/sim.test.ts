import { expect, test } from "bun:test";
import { Coverage } from "./coverage.ts";
import { missingCoverage } from "./expected-coverage.ts";
import { runSeed } from "./run.ts";
import { explain, type Totals } from "./seeds.ts";
import { runInWorkers } from "./workers.ts";

test("a thousand seeds keep every invariant, and see everything that can go wrong", async () => {
  const totals: Totals = { seeds: 0, steps: 0, virtualMs: 0, coverage: new Coverage() };
  const failure = await runInWorkers({
    from: 1,
    count: 1000,
    mutant: undefined,
    totals,
    onProgress: () => {},
  });
  if (failure !== undefined)
    throw new Error(explain(failure, `npm run sim -- --seed ${failure.seed} --trace`));
  expect([totals.seeds, missingCoverage(totals.coverage)]).toEqual([1000, []]);
}, 600_000);

const sample = [1, 7, 42, 99, 250];
test.each(sample)("scenario 58: seed %d gives the same trace twice", (seed) => {
  const runs = [runSeed(seed), runSeed(seed)];
  expect(new Set(runs.map(({ hash }) => hash)).size).toBe(1);
});
