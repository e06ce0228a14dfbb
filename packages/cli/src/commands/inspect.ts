import type { Command } from "commander";
import type { SandboxInfo } from "holdfast";
import { addGlobalOptions, contextOf } from "../context.ts";
import { type Fact, future, past, renderFacts } from "../facts.ts";
import { findSandbox } from "../find-sandbox.ts";
import { print, printJson } from "../print.ts";
import { policyText, reaping } from "../reaping.ts";

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
  const { limits, lastDeath, claim } = info;
  const facts: Fact[] = [
    ["name", info.name],
    ["id", info.id],
    ["state", info.state],
    ["generation", `${info.generation} (${info.continuity})`],
    ["provider", info.provider],
    ["limits", limits.detail === undefined ? limits.state : `${limits.state}: ${limits.detail}`],
    ["created", past(info.createdAt)],
    ["started", past(info.startedAt)],
    ["last used", past(info.lastUsedAt)],
    ["lives", policyText(info)],
    ["reaped", info.state === "running" ? (future(info.reapsAt) ?? reaping(info)) : undefined],
    ["held by", info.heldAwakeBy.join("; ")],
    ["claim", claim && `${claim.holder}, until ${future(claim.expiresAt)}`],
    ["last death", lastDeath && `${lastDeath.cause}, ${past(lastDeath.at)}: ${lastDeath.detail}`],
    ["failure", info.failure],
    ["labels", Object.keys(info.labels).length === 0 ? undefined : JSON.stringify(info.labels)],
    ["spec", JSON.stringify(info.spec)],
  ];
  return renderFacts(facts);
}

const EXAMPLES = `
Examples:
  holdfast inspect issue-42
  holdfast inspect issue-42 -o json

\`holdfast why\` asks what runs inside, too, and says what will happen next.`;
