import type { Check } from "@holdfast/core";
import { HoldfastError } from "@holdfast/protocol";
import { readConfig } from "./config.ts";
import { createProvider } from "./create-provider.ts";

const usage = `Usage: holdfast doctor [--data-dir DIR] [--providers LIST] [-o json]

Tries, for real, what sandboxes need from this machine, and says what to type for what is missing.
Exits with 0 if everything that is required is there, else with 1.
`;

const argv = process.argv.slice(2);
const asJson = argv.some(
  (arg, i) => arg === "--output=json" || (["-o", "--output"].includes(arg) && argv[i + 1] === "json"),
);
if (argv.includes("--help") || argv.includes("-h")) process.stdout.write(usage);
else await main();

async function main(): Promise<void> {
  const checks = await runChecks();
  process.stdout.write(asJson ? `${JSON.stringify({ checks }, null, 2)}\n` : checks.map(render).join(""));
  process.exit(checks.some((check) => check.required && !check.ok) ? 1 : 0);
}

async function runChecks(): Promise<Check[]> {
  const config = readConfig(
    argv.filter((arg, i) => !isOutputOption(arg, argv[i - 1])),
    process.env,
  );
  if (config === "help") return [];
  try {
    const checks = await Promise.all(config.providers.map((kind) => createProvider(kind, config).probe()));
    return checks.flat();
  } catch (error) {
    if (!(error instanceof HoldfastError)) throw error;
    const remedy = error.hint === undefined ? {} : { remedy: error.hint };
    return [{ name: "keeper", ok: false, required: true, detail: error.message, ...remedy }];
  }
}

function isOutputOption(arg: string, before: string | undefined): boolean {
  return ["-o", "--output", "--output=json"].includes(arg) || before === "-o" || before === "--output";
}

function render({ name, ok, required, detail, remedy }: Check): string {
  const mark = ok ? "ok     " : required ? "MISSING" : "without";
  return `${mark}  ${name}: ${detail}\n${ok || remedy === undefined ? "" : `         to fix: ${remedy}\n`}`;
}
