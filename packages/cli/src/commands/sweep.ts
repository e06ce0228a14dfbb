import type { Command } from "commander";
import { Operator, type SweepReport } from "holdfast";
import { addGlobalOptions, contextOf } from "../context.ts";
import { print, printJson } from "../print.ts";
import { oneLine } from "../style.ts";
import { renderTable } from "../table.ts";

export function define(command: Command): void {
  addGlobalOptions(command)
    .option("--dry-run", "say what would be done, and do nothing")
    .addHelpText("after", EXAMPLES)
    .action(sweep);
}

async function sweep(options: { dryRun?: true }, command: Command): Promise<void> {
  const { client, output } = await contextOf(command);
  const operator = await Operator.connect({ client });
  const report = await operator.sweep({ dryRun: options.dryRun });
  await (output === "json" ? printJson(report) : print(render(report)));
  if (report.providers.some(({ error }) => error !== undefined)) process.exitCode = 1;
}

function render({ dryRun, providers }: SweepReport): string {
  const actions = providers.flatMap((provider) => provider.actions);
  const summary = providers.map((provider) => `${oneLine(summaryOf(provider))}\n`).join("");
  if (actions.length === 0) return summary;
  const head = [dryRun ? "WOULD" : "DONE", "SANDBOX", "INSTANCE", "NOT BEFORE", "BECAUSE"];
  const rows = actions.map((one) => [one.do, one.sandboxId, one.instance, one.at ?? "-", one.because]);
  return summary + renderTable({ head, rows });
}

function summaryOf(provider: SweepReport["providers"][number]): string {
  const { found, adopted, foreign, error, braked } = provider;
  if (error !== undefined)
    return `${provider.provider}: could not be looked at, so nothing is done: ${error}`;
  const counts = `${found.instances} instances, ${found.disks} disks, ${adopted} as they should be`;
  const others = foreign === 0 ? "" : `, ${foreign} of other installations left alone`;
  return `${provider.provider}: ${counts}${others}${braked === undefined ? "" : `; held back: ${braked}`}`;
}

const EXAMPLES = `
Examples:
  holdfast sweep --dry-run    what is on this machine that nobody wants, and what would be done about it
  holdfast sweep              do it now; the server does so by itself every minute

It exits with 1 if a backend could not be looked at.`;
