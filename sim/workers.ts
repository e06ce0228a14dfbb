import { availableParallelism } from "node:os";
import type { RunResult } from "./run.ts";
import { addTo, type Totals } from "./seeds.ts";

/** Runs the seeds on every core, each worker every nth of them. Ends with the first seed that breaks something. */
export async function runInWorkers(options: {
  from: number;
  count: number;
  mutant: string | undefined;
  /** Instead of a seed's own chaos. */
  scenario?: string | undefined;
  totals: Totals;
  onProgress: () => void;
}): Promise<RunResult | undefined> {
  const { from, count, totals, onProgress } = options;
  const workers = Math.min(Math.max(2, availableParallelism()), 8, count);
  let failure: RunResult | undefined;
  const children = Array.from({ length: workers }, (_, i) =>
    startWorker({ ...options, first: from + i, step: workers }),
  );
  await Promise.all(
    children.map(async (child) => {
      for await (const result of resultsOf(child)) {
        addTo(totals, result);
        onProgress();
        if (result.violation === undefined) continue;
        failure ??= result;
        for (const one of children) one.kill();
      }
      const code = await child.exited;
      if (code !== 0 && failure === undefined) throw new Error(`a worker ended with ${code}`);
    }),
  );
  return failure;
}

type Worker = Bun.Subprocess<"ignore", "pipe", "inherit">;

function startWorker({
  first,
  step,
  from,
  count,
  mutant,
  scenario,
}: {
  first: number;
  step: number;
  from: number;
  count: number;
  mutant: string | undefined;
  scenario?: string | undefined;
}): Worker {
  const worker = new URL("./worker.ts", import.meta.url).pathname;
  const task = JSON.stringify({ first, step, end: from + count, mutant, scenario });
  return Bun.spawn([process.execPath, worker, task], { stdin: "ignore", stdout: "pipe", stderr: "inherit" });
}

/** One line of JSON for each seed. */
async function* resultsOf(child: Worker): AsyncGenerator<RunResult> {
  const decoder = new TextDecoder();
  let rest = "";
  for await (const chunk of child.stdout) {
    const lines = (rest + decoder.decode(chunk, { stream: true })).split("\n");
    rest = lines.pop() ?? "";
    for (const line of lines) yield JSON.parse(line) as RunResult;
  }
}
