// `npm test`: the checks, every package's tests, the simulation, the end-to-end tests; then a look at what is left.
// Ends with a line `N passed, N failed`.
import { difference, lookAtTheWorld } from "./world.ts";

const inCi = process.env.CI === "true";
const bun = process.execPath;
const total = { passed: 0, failed: 0 };
/** What failed, to be told again at the end: whoever sees only the end of a long output sees why. */
const failures: string[] = [];
// For what hangs. A test that needs longer on a quiet machine says so itself.
const limits = ["--timeout", "120000"];
// Many tests wait for something. Each file has a process of its own, and its own servers, daemons and data dirs.
const sideBySide = ["--parallel=2"];

const before = lookAtTheWorld();
await check("types", [bun, "x", "tsc", "-p", "."]);
await check("lint and format", [bun, "x", "biome", "check", "."]);
await check("unused code", [bun, "x", "knip", "--no-config-hints"]);
// Before anything else is busy: it measures.
if (inCi) await check("speed: no ratio to its floor has doubled", [bun, "bench/main.ts", "--guard"]);
await suite("packages", ["packages", "scripts", "bench"], sideBySide);
await suite("simulation", ["sim"]); // it takes every core by itself
await suite("end to end", ["e2e"], sideBySide);
await nothingLeftBehind();

for (const failure of failures) process.stdout.write(`\n== again, what failed: ${failure}\n`);
process.stdout.write(`\n${total.passed} passed, ${total.failed} failed\n`);
process.exit(total.failed === 0 ? 0 : 1);

/** A check counts as one test. */
async function check(name: string, command: string[]): Promise<void> {
  const { exitCode, output } = await run(command);
  count(name, exitCode === 0, output);
}

async function suite(name: string, folders: string[], options: string[] = []): Promise<void> {
  title(name);
  const { exitCode, output } = await run([bun, "test", ...limits, ...options, ...folders], { show: true });
  // The last of them: a test that runs others shows what those printed, if they failed.
  const counted = (word: string) =>
    Number([...output.matchAll(new RegExp(`^ *(\\d+) ${word}$`, "gm"))].at(-1)?.[1] ?? 0);
  total.passed += counted("pass");
  // A skipped test is a missing engine: fine for a user who is told, a failure in CI.
  const failed = counted("fail") + (inCi ? counted("skip") : 0);
  total.failed += failed === 0 && exitCode !== 0 ? 1 : failed;
  if (failed === 0 && exitCode !== 0)
    failures.push(`${name}, exit code ${exitCode}\n${lastLines(output, 30)}`);
  for (const told of failedTests(output)) failures.push(`${name}\n${told}`);
}

/** Each failed (in CI also each skipped) test's own line, with what was printed since the test before it. */
function failedTests(output: string): string[] {
  const told = new Map<string, string>(); // by the test's line: of a long run, Bun itself lists them again
  let lines: string[] = [];
  for (const line of output.split("\n")) {
    lines.push(line);
    const end = /^\((pass|fail|skip)\) /.exec(line)?.[1];
    const failed = end === "fail" || (end === "skip" && inCi);
    if (failed && !told.has(line)) told.set(line, lastLines(lines.join("\n"), 40));
    if (end !== undefined) lines = [];
  }
  return [...told.values()];
}

function lastLines(text: string, most: number): string {
  const lines = text.trimEnd().split("\n").slice(-most);
  return lines.map((line) => (line.length > 300 ? `${line.slice(0, 300)}…` : line)).join("\n");
}

async function nothingLeftBehind(): Promise<void> {
  // What was told to end may take a moment to be reaped.
  let left = difference(before, lookAtTheWorld());
  for (let i = 0; i < 20 && left.length > 0; i++) {
    await Bun.sleep(100);
    left = difference(before, lookAtTheWorld());
  }
  count("nothing is left behind", left.length === 0, `${left.join("\n")}\n`);
}

function count(name: string, ok: boolean, output: string): void {
  title(`${ok ? "ok" : "FAILED"}: ${name}`);
  total[ok ? "passed" : "failed"]++;
  if (ok) return;
  process.stdout.write(output);
  failures.push(`${name}\n${lastLines(output, 40)}`);
}

function title(text: string): void {
  process.stdout.write(`\n== ${text}\n`);
}

async function run(command: string[], { show = false } = {}): Promise<{ exitCode: number; output: string }> {
  const child = Bun.spawn(["sh", "-c", 'exec "$@" 2>&1', "sh", ...command], {
    stdin: "ignore",
    stdout: "pipe",
  });
  let output = "";
  const decoder = new TextDecoder();
  for await (const chunk of child.stdout) {
    output += decoder.decode(chunk, { stream: true });
    if (show) process.stdout.write(chunk);
  }
  return { exitCode: await child.exited, output };
}
