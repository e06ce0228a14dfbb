// `npm run bench`: our costs beside their floor and beside what one would use instead, in one run.
import { parseArgs } from "node:util";
import { Bench } from "./bench.ts";
import { cases } from "./cases/index.ts";
import { broken, guarded } from "./guard.ts";
import { tables } from "./report.ts";

const HELP = `npm run bench -- [CASE...] [--json] [--short] [--guard]

Prints what we cost beside the floor (the least that the same work costs on this machine) and beside peers. Without a
case, all of them but those marked *; that takes a quarter of an hour, and needs a machine that does nothing else.

${cases.map(({ name, about, onlyIfNamed }) => `  ${(onlyIfNamed ? `${name} *` : name).padEnd(14)}${about}`).join("\n")}

  --json    the data instead of tables
  --short   a quick look: fewer rounds, smaller files, no peers
  --guard   a short run that fails with its table if a ratio has doubled; CI runs it
`;

const { values, positionals } = readArgs();
if (values.help) {
  process.stdout.write(HELP);
  process.exit(0);
}
const chosen = chooseCases();
const interrupted = new AbortController();
// What was started is ended, whatever was the reason.
for (const signal of ["SIGINT", "SIGTERM"] as const)
  process.once(signal, () => interrupted.abort(new Error("interrupted")));

const { lines, failures } = await runAll();
if (values.json) process.stdout.write(`${JSON.stringify({ at: new Date(), lines, failures }, null, 2)}\n`);
else process.stdout.write(`${tables(lines)}\n${failures.map((failure) => `\nFAILED ${failure}`).join("")}`);
process.exit(failures.length === 0 ? 0 : 1);

/** A case that fails, or whose answer was wrong, does not keep the others from being measured. */
async function runAll(): Promise<{ lines: Bench["lines"]; failures: string[] }> {
  await using bench = new Bench({ isShort: values.short || values.guard, signal: interrupted.signal });
  const failures = await runEach(bench);
  if (!values.guard) return { lines: bench.lines, failures };
  // Whatever else the machine did in that minute is not likely to come twice.
  if (broken(bench.lines).length > 0 && failures.length === 0) failures.push(...(await runEach(bench)));
  return { lines: bench.lines, failures: [...failures, ...broken(bench.lines)] };
}

async function runEach(bench: Bench): Promise<string[]> {
  const failures: string[] = [];
  for (const one of chosen) {
    if (interrupted.signal.aborted) break;
    try {
      await bench.run(one);
    } catch (error) {
      failures.push(`${one.name}: ${error instanceof Error ? error.message : error}`);
    }
  }
  return failures;
}

function chooseCases(): typeof cases {
  const unknown = positionals.filter((name) => !cases.some((one) => one.name === name));
  if (unknown.length > 0) fail(`there is no case ${unknown.join(", ")}`);
  const named = values.guard ? guarded : positionals;
  if (named.length > 0) return cases.filter(({ name }) => named.includes(name));
  return cases.filter(({ onlyIfNamed }) => onlyIfNamed === undefined);
}

function readArgs() {
  const options = {
    json: { type: "boolean", default: false },
    short: { type: "boolean", default: false },
    guard: { type: "boolean", default: false },
    help: { type: "boolean", short: "h", default: false },
  } as const;
  try {
    return parseArgs({ options, allowPositionals: true });
  } catch (error) {
    return fail(error instanceof Error ? error.message : String(error));
  }
}

function fail(message: string): never {
  process.stderr.write(`error: ${message}\nhint: npm run bench -- --help\n`);
  process.exit(2);
}
