import type { Check } from "@holdfast/core";
import { HoldfastError } from "@holdfast/protocol";
import { type Examined, examine, inOrder, obstacleOf, whyNot } from "./choose-providers.ts";
import { type Config, readConfig } from "./config.ts";
import { createProvider } from "./create-provider.ts";
import { examineMachine } from "./doctor/machine.ts";
import { examinePlace } from "./doctor/place.ts";
import { examinePorts } from "./doctor/ports.ts";

const usage = `Usage: holdfast doctor [options]

Tries, for real, what sandboxes need from this machine, and says what to type for what is missing.

Options:
  --data-dir DIR      where a server keeps, or would keep, everything  (HOLDFAST_DATA_DIR)
  --port PORT         where it listens, or would listen                (HOLDFAST_PORT, default 4750)
  --providers LIST    only these: local, docker. Without it all are tried, and it says which one
                      sandboxes would be on that name none             (HOLDFAST_PROVIDERS)
  -o, --output FORMAT table or json
  --help              this text; every other option of \`holdfast serve\` is understood, too

Examples:
  holdfast doctor                      what works here, and what to do about what does not
  holdfast doctor --providers docker   only what sandboxes in Docker need
  holdfast doctor -o json              for programs

Exits with 0 if sandboxes can be had here (on every provider that --providers names); else with 1, and with 2 if it was
called wrongly. "MISSING" must be repaired; "without" says what is not available without it.
`;

try {
  await main(process.argv.slice(2));
} catch (error) {
  if (!(error instanceof HoldfastError)) throw error;
  const hint = error.code === "invalid_argument" ? "holdfast doctor --help" : error.hint;
  process.stderr.write(`error: ${error.message}\n${hint === undefined ? "" : `hint: ${hint}\n`}`);
  process.exit(error.code === "invalid_argument" ? 2 : 1);
}

async function main(argv: readonly string[]): Promise<void> {
  const { output, rest } = takeOutput(argv);
  const config = readConfig(rest, process.env);
  if (config === "help") {
    process.stdout.write(usage);
    return;
  }
  const machine = await machineOf(config);
  const providers: Examined[] = [];
  for (const kind of config.providers ?? inOrder) providers.push(await examine(kind, config, tryingAgain));
  const usable = providers.filter((one) => obstacleOf(one) === undefined);
  const wasAsked = config.providers !== undefined;
  const enough = wasAsked ? usable.length === providers.length : usable.length > 0;
  const ok = enough && obstacleOf({ checks: machine }) === undefined;
  const report = { machine, providers, usable, wasAsked, ok };
  process.stdout.write(output === "json" ? json(report) : text(report));
  process.exit(ok ? 0 : 1);
}

interface Report {
  machine: readonly Check[];
  providers: readonly Examined[];
  usable: readonly Examined[];
  /** Whether somebody named the providers. */
  wasAsked: boolean;
  ok: boolean;
}

async function machineOf(config: Config): Promise<Check[]> {
  return [...examineMachine(config), ...(await examinePlace(config)), ...(await examinePorts(config))];
}

/** What worked before is no answer to somebody who asks what works now. */
function tryingAgain(
  ...[kind, config]: Parameters<typeof createProvider>
): ReturnType<typeof createProvider> {
  return createProvider(kind, config, { tryAgain: true });
}

/** The one option that a server has not. */
function takeOutput(argv: readonly string[]): { output: "table" | "json"; rest: string[] } {
  const at = argv.findIndex((arg) => /^(-o|--output)(=|$)/.test(arg));
  if (at < 0) return { output: "table", rest: [...argv] };
  const [, joined] = argv[at]?.split("=") ?? [];
  const value = joined ?? argv[at + 1];
  if (value !== "json" && value !== "table")
    throw new HoldfastError("invalid_argument", `--output must be table or json, not "${value ?? ""}"`);
  return { output: value, rest: argv.toSpliced(at, joined === undefined ? 2 : 1) };
}

function json({ machine, providers, usable, ok }: Report): string {
  const checks = providers.flatMap(({ kind, checks }) =>
    checks.map((check) => ({ provider: kind, ...check })),
  );
  const report = { ok, default: usable[0]?.kind ?? null, checks: [...machine, ...checks] };
  return `${JSON.stringify(report, null, 2)}\n`;
}

function text({ machine, providers, usable, wasAsked, ok }: Report): string {
  const isNeeded = wasAsked || usable.length === 0;
  const sections = [
    section("this machine", machine),
    ...providers.map(({ kind, checks }) => section(`provider ${kind}`, asAsked(checks, { isNeeded }))),
  ];
  const obstacle = obstacleOf({ checks: machine });
  const last =
    ok || obstacle === undefined
      ? ""
      : `No server, or no sandbox, can be started: ${obstacle.name}, see above.\n`;
  return `${sections.join("")}${verdict(providers, usable)}${last}`;
}

function section(title: string, checks: readonly Check[]): string {
  return `${title}\n${checks.map(render).join("")}\n`;
}

/** Where nobody asked for this one and another can be used, nothing of it must be repaired. */
function asAsked(checks: readonly Check[], { isNeeded }: { isNeeded: boolean }): Check[] {
  return checks.map((check) => (isNeeded ? check : { ...check, required: false }));
}

function render({ name, ok, required, detail, remedy }: Check): string {
  const mark = ok ? "ok     " : required ? "MISSING" : "without";
  return `${mark}  ${name}: ${detail}\n${ok || remedy === undefined ? "" : `         to fix: ${remedy}\n`}`;
}

function verdict(all: readonly Examined[], [first]: readonly Examined[]): string {
  if (first === undefined) return "Sandboxes cannot be isolated on this machine: repair one of these.\n";
  const before = all.slice(0, all.indexOf(first));
  const because = before.length === 0 ? "" : `, because ${whyNot(before)}`;
  return `Sandboxes that name no provider are on: ${first.kind}${because}\n`;
}
