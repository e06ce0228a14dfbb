import type { Command } from "commander";
import { Operator, type ProviderInfo } from "holdfast";
import { addGlobalOptions, addQuietOption, contextOf } from "../context.ts";
import { print, printJson } from "../print.ts";
import type { Colour } from "../style.ts";
import { type Cell, renderTable } from "../table.ts";
import { amount } from "../units.ts";

const stateColours: Record<ProviderInfo["state"], Colour> = {
  ok: "green",
  unreachable: "red",
  closed: "yellow",
};

export function define(command: Command): void {
  addQuietOption(addGlobalOptions(command), "only their names")
    .addHelpText("after", EXAMPLES)
    .action(providers);
}

async function providers(_options: object, command: Command): Promise<void> {
  const { client, output, quiet } = await contextOf(command);
  const all = await (await Operator.connect({ client })).providers();
  if (output === "json") return printJson({ providers: all });
  if (quiet) return print(all.map(({ provider }) => `${provider}\n`).join(""));
  const head = ["PROVIDER", "STATE", "SLOTS", "MEMORY", "DISK", "NETWORKS", "NOTE"];
  await print(renderTable({ head, rows: all.map(row), spare: ["NETWORKS", "SLOTS"] }));
}

function row(info: ProviderInfo): (string | Cell)[] {
  const { provider, isDefault, state, capacity, capabilities } = info;
  return [
    isDefault ? `${provider} (default)` : provider,
    { text: state, colour: stateColours[state] },
    amountText(capacity.slots, String),
    amountText(capacity.memory, amount),
    amountText(capacity.disk, amount),
    capabilities.networks.join(" "),
    info.reason ?? info.defaultBecause ?? capabilities.limits.detail,
  ];
}

function amountText(of: ProviderInfo["capacity"]["slots"], text: (number: number) => string): string {
  if ("unknown" in of) return `unknown: ${of.unknown}`;
  return of.total === null ? text(of.used) : `${text(of.used)} of ${text(of.total)}`;
}

const EXAMPLES = `
Examples:
  holdfast providers           which backends there are, and what room they have
  holdfast providers -o json`;
