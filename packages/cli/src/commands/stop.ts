import type { Command } from "commander";
import { addGlobalOptions, addQuietOption } from "../context.ts";
import { forEachSandbox } from "../for-each-sandbox.ts";

export function define(command: Command): void {
  addQuietOption(addGlobalOptions(command), "ids instead of names")
    .argument("<sandboxes...>", "their names, ids, or beginnings of ids")
    .addHelpText("after", EXAMPLES)
    .action(stop);
}

async function stop(meant: string[], _options: object, command: Command): Promise<void> {
  await forEachSandbox(command, meant, async (sandbox) => (await sandbox.stop()).info);
}

const EXAMPLES = `
Examples:
  holdfast stop issue-42
  holdfast stop issue-42 issue-43

Everything that runs in it ends; its files stay. A next command starts it again.`;
