import type { Command } from "commander";
import type { SandboxInfo } from "holdfast";
import { addGlobalOptions, contextOf } from "../context.ts";
import { findSandbox } from "../find-sandbox.ts";
import { print, printJson } from "../print.ts";
import { oneLine, paint } from "../style.ts";
import { age } from "../units.ts";

export function define(command: Command): void {
  addGlobalOptions(command)
    .argument("<sandbox>", "its name, its id, or the beginning of its id")
    .addHelpText("after", EXAMPLES)
    .action(inspect);
}

async function inspect(meant: string, _options: object, command: Command): Promise<void> {
  const { client, output } = await contextOf(command);
  const { info } = await findSandbox(client, meant);
  await (output === "json" ? printJson(info) : print(render(info)));
}

function render(info: SandboxInfo): string {
  const facts: [string, string | undefined][] = [
    ["name", info.name],
    ["id", info.id],
    ["state", info.state],
    ["generation", `${info.generation} (${info.continuity})`],
    ["provider", info.provider],
    [
      "limits",
      info.limits.detail === undefined ? info.limits.state : `${info.limits.state}: ${info.limits.detail}`,
    ],
    ["created", when(info.createdAt)],
    ["started", when(info.startedAt)],
    [
      "last death",
      info.lastDeath && `${info.lastDeath.cause}, ${when(info.lastDeath.at)}: ${info.lastDeath.detail}`,
    ],
    ["failure", info.failure],
    ["labels", Object.keys(info.labels).length === 0 ? undefined : JSON.stringify(info.labels)],
    ["spec", JSON.stringify(info.spec)],
  ];
  const shown = facts.filter((fact): fact is [string, string] => fact[1] !== undefined);
  return shown.map(([name, value]) => `${paint("grey", `${name}:`.padEnd(12))} ${oneLine(value)}\n`).join("");
}

function when(at: string | undefined): string | undefined {
  return at === undefined ? undefined : `${at} (${age(at)} ago)`;
}

const EXAMPLES = `
Examples:
  holdfast inspect issue-42
  holdfast inspect issue-42 -o json`;
