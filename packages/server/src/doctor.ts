import type { Check } from "@holdfast/core";
import { type Examined, examine, inOrder, obstacleOf, whyNot } from "./choose-providers.ts";
import { readConfig } from "./config.ts";
import { createProvider } from "./create-provider.ts";

const usage = `Usage: holdfast doctor [--data-dir DIR] [--providers LIST] [-o json]

Tries, for real, what sandboxes need from this machine, and says what to type for what is missing.
Without --providers it tries all of them, and says which one sandboxes would be on that name none.
Exits with 0 if those that were asked for can be used, or at least one where none was; else with 1.
`;

const argv = process.argv.slice(2);
const asJson = argv.some(
  (arg, i) => arg === "--output=json" || (["-o", "--output"].includes(arg) && argv[i + 1] === "json"),
);
if (argv.includes("--help") || argv.includes("-h")) process.stdout.write(usage);
else await main();

async function main(): Promise<void> {
  const config = readConfig(
    argv.filter((arg, i) => !isOutputOption(arg, argv[i - 1])),
    process.env,
  );
  if (config === "help") return;
  const all: Examined[] = [];
  for (const kind of config.providers ?? inOrder) all.push(await examine(kind, config, tryingAgain));
  const usable = all.filter((one) => obstacleOf(one) === undefined);
  const wanted = config.providers === undefined ? usable[0] : usable.length === all.length && all[0];
  process.stdout.write(asJson ? json(all, usable[0]) : `${all.map(section).join("")}${verdict(all, usable)}`);
  process.exit(wanted ? 0 : 1);
}

/** What worked before is no answer to somebody who asks what works now. */
function tryingAgain(
  ...[kind, config]: Parameters<typeof createProvider>
): ReturnType<typeof createProvider> {
  return createProvider(kind, config, { tryAgain: true });
}

function isOutputOption(arg: string, before: string | undefined): boolean {
  return ["-o", "--output", "--output=json"].includes(arg) || before === "-o" || before === "--output";
}

function json(all: readonly Examined[], first: Examined | undefined): string {
  const checks = all.flatMap(({ kind, checks }) => checks.map((check) => ({ provider: kind, ...check })));
  return `${JSON.stringify({ checks, default: first?.kind ?? null }, null, 2)}\n`;
}

function section({ kind, checks }: Examined): string {
  return `${kind}\n${checks.map(render).join("")}\n`;
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
