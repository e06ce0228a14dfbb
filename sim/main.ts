// `npm run sim`: many seeds, or one of them with everything that happens in it.
import { parseArgs } from "node:util";
import { Coverage } from "./coverage.ts";
import { missingCoverage } from "./expected-coverage.ts";
import { explain, judgeSeed, type Totals } from "./seeds.ts";
import { runInWorkers } from "./workers.ts";

const { values } = parseArgs({
  options: {
    seed: { type: "string" },
    seeds: { type: "string", default: "1000" },
    from: { type: "string", default: "1" },
    forever: { type: "boolean", default: false },
    trace: { type: "boolean", default: false },
    mutant: { type: "string" },
  },
});

const mutant = values.mutant === undefined ? "" : ` --mutant ${values.mutant}`;
process.exitCode = values.seed === undefined ? await many() : await one(Number(values.seed));

async function one(seed: number): Promise<number> {
  if (values.mutant !== undefined) (await import("./mutate.ts")).applyMutant(values.mutant);
  const result = await judgeSeed(seed, values.trace ? { print: say } : {});
  say(explain(result, replayOf(seed)));
  say(`${result.steps} steps, ${hours(result.virtualMs)}, trace ${result.hash}`);
  return result.violation === undefined ? 0 : 1;
}

async function many(): Promise<number> {
  const totals: Totals = { seeds: 0, steps: 0, virtualMs: 0, coverage: new Coverage() };
  const startedAt = performance.now();
  const failure = await runInWorkers({
    from: Number(values.from),
    count: values.forever ? Number.POSITIVE_INFINITY : Number(values.seeds),
    mutant: values.mutant,
    totals,
    onProgress: () => progress(totals, startedAt),
  });
  if (process.stderr.isTTY) process.stderr.write("\r\x1b[K");
  if (failure !== undefined) say(explain(failure, replayOf(failure.seed)));
  const missing = failure === undefined && totals.seeds >= 1000 ? missingCoverage(totals.coverage) : [];
  if (missing.length > 0) say(`never seen: ${missing.join(", ")}`);
  for (const [name, count] of totals.coverage.under("fault "))
    if (!name.startsWith("in phase")) say(`  ${name}: ${count}`);
  say(summary(totals, startedAt));
  return failure === undefined && missing.length === 0 ? 0 : 1;
}

function summary({ seeds, steps, virtualMs, coverage }: Totals, startedAt: number): string {
  const perSecond = (seeds / ((performance.now() - startedAt) / 1000)).toFixed(1);
  const pairs = coverage.under("fault in phase ").size;
  const edges = coverage.under("transition ").size;
  return `${seeds} seeds, ${perSecond} a second: ${steps} steps, ${(virtualMs / 86_400_000).toFixed(1)} virtual days, ${edges} transitions, ${pairs} pairs of phase and fault`;
}

function progress(totals: Totals, startedAt: number): void {
  if (process.stderr.isTTY) process.stderr.write(`\r\x1b[K${summary(totals, startedAt)}`);
}

function replayOf(seed: number): string {
  return `npm run sim -- --seed ${seed} --trace${mutant}`;
}

function hours(ms: number): string {
  return `${(ms / 3_600_000).toFixed(1)} virtual hours`;
}

function say(line: string): void {
  process.stdout.write(`${line}\n`);
}
