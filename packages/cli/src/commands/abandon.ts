import { createInterface } from "node:readline/promises";
import type { Command } from "commander";
import { Operator, type Sandbox } from "holdfast";
import { addGlobalOptions, contextOf } from "../context.ts";
import { UsageError } from "../failure.ts";
import { findSandbox } from "../find-sandbox.ts";
import { print, printJson } from "../print.ts";

interface AbandonOptions {
  reason: string;
  yes?: true;
}

export function define(command: Command): void {
  addGlobalOptions(command)
    .argument("<sandbox>", "its name, its id, or the beginning of its id")
    .requiredOption("--reason <text>", "why; it is written into the timeline")
    .option("-y, --yes", "do not ask")
    .addHelpText("after", EXAMPLES)
    .action(abandon);
}

async function abandon(meant: string, options: AbandonOptions, command: Command): Promise<void> {
  const { client, output } = await contextOf(command);
  const sandbox = await findSandbox(client, meant);
  if (!options.yes) await confirm(sandbox);
  const operator = await Operator.connect({ client });
  const info = await operator.abandon(sandbox.id, { reason: options.reason });
  await (output === "json" ? printJson(info) : print(`${info.name}\n`));
}

/** It gives up the promise that two instances never run at once: nobody does that by a slip of the fingers. */
async function confirm({ name }: Sandbox): Promise<void> {
  if (!process.stdin.isTTY) throw new UsageError("nobody can be asked here", "Add --yes if you are sure.");
  const dialog = createInterface({ input: process.stdin, output: process.stderr });
  const question = `The old instance of ${name} may still run beside a new one. Type its name to go on: `;
  const answer = await dialog.question(question).finally(() => dialog.close());
  if (answer.trim() !== name)
    throw new UsageError("that is not its name: nothing was done", "Try again, or add --yes.");
}

const EXAMPLES = `
Examples:
  holdfast abandon issue-42 --reason "its host was scrapped"
  holdfast abandon issue-42 --yes --reason "ticket 17"

For an instance that cannot be proved gone and stands in the way. It is forgotten without evidence, so that another may
run, and it is hunted on. \`holdfast why\` shows what is tried; \`holdfast rm --force\` is the better tool for the rest.`;
