import type { Command } from "commander";
import { type LeaseInfo, Operator } from "holdfast";
import { addGlobalOptions, addQuietOption, contextOf } from "../context.ts";
import { print, printJson } from "../print.ts";
import { renderTable } from "../table.ts";
import { age } from "../units.ts";

export function define(command: Command): void {
  addQuietOption(addGlobalOptions(command), "only the ids of the instances")
    .option("-a, --all", "also those that are proved gone")
    .addHelpText("after", EXAMPLES)
    .action(leases);
}

async function leases(options: { all?: true }, command: Command): Promise<void> {
  const { client, output, quiet } = await contextOf(command);
  const operator = await Operator.connect({ client });
  const shown: LeaseInfo[] = [];
  for await (const lease of operator.leases()) {
    if (options.all || lease.phase !== "gone") shown.push(lease);
  }
  shown.sort((a, b) => a.createdAt.localeCompare(b.createdAt)); // a page's own order is by id
  if (output === "json") return printJson({ leases: shown });
  if (quiet) return print(shown.map(({ instanceId }) => `${instanceId}\n`).join(""));
  const head = ["INSTANCE", "SANDBOX", "GEN", "PHASE", "PROVIDER", "AGE", "STOPS", "NOTE"];
  await print(renderTable({ head, rows: shown.map(row), spare: ["GEN", "STOPS", "PROVIDER", "INSTANCE"] }));
}

function row(lease: LeaseInfo): string[] {
  const { instanceId, sandboxId, generation, phase, provider, createdAt, attempts } = lease;
  const counts = [age(createdAt), String(attempts)];
  return [instanceId, sandboxId, String(generation), phase, provider, ...counts, noteOf(lease)];
}

function noteOf({ evidence, lastError, stopReason, origin, spare }: LeaseInfo): string {
  if (evidence !== undefined) return `${evidence.kind}: ${evidence.detail}`;
  const isFound = origin === "orphan" ? "found without a record" : "";
  return lastError ?? stopReason ?? (spare ? "a spare, for the next create like the last" : isFound);
}

const EXAMPLES = `
Examples:
  holdfast leases           every instance that exists or may exist
  holdfast leases --all     with the evidence of those that are gone
  holdfast leases -o json`;
