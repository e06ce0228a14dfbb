// One of the processes of `npm run sim`: runs its share of the seeds and prints a line for each.
import type { RunResult } from "./run.ts";

const task = JSON.parse(process.argv[2] ?? "{}") as {
  first: number;
  step: number;
  end: number | null;
  mutant?: string;
};

if (task.mutant !== undefined) (await import("./mutate.ts")).applyMutant(task.mutant);
// After the mutant: what it changes must not be loaded before.
const { judgeSeed } = await import("./seeds.ts");

for (let seed = task.first; task.end === null || seed < task.end; seed += task.step) {
  const result = await judgeSeed(seed);
  process.stdout.write(`${JSON.stringify(result satisfies RunResult)}\n`);
  if (result.violation !== undefined) break;
}
