// One of the processes of `npm run sim`: runs its share of the seeds and prints a line for each.
import type { RunResult } from "./run.ts";
import type { rare } from "./scenarios/rare.ts";

const task = JSON.parse(process.argv[2] ?? "{}") as {
  first: number;
  step: number;
  end: number | null;
  mutant?: string;
  scenario?: keyof typeof rare;
};

if (task.mutant !== undefined) (await import("./mutate.ts")).applyMutant(task.mutant);
// After the mutant: what it changes must not be loaded before.
const { judgeSeed } = await import("./seeds.ts");
const { judgeRare } = await import("./scenarios/rare.ts");
const { scenario } = task;
const judge = scenario === undefined ? judgeSeed : (seed: number) => judgeRare(scenario, seed);

for (let seed = task.first; task.end === null || seed < task.end; seed += task.step) {
  const result = await judge(seed);
  process.stdout.write(`${JSON.stringify(result satisfies RunResult)}\n`);
  if (result.violation !== undefined) break;
}
