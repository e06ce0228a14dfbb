import type { Command } from "commander";
import { addGlobalOptions, addQuietOption } from "../context.ts";
import { forEachSandbox } from "../for-each-sandbox.ts";

export function define(command: Command): void {
  addQuietOption(addGlobalOptions(command), "ids instead of names")
    .argument("<sandboxes...>", "their names, ids, or beginnings of ids")
    .addHelpText("after", EXAMPLES)
    .action(resume);
}

async function resume(meant: string[], _options: object, command: Command): Promise<void> {
  await forEachSandbox(command, meant, async (sandbox) => (await sandbox.resume()).info);
}

const EXAMPLES = `
Examples:
  holdfast resume issue-42
  holdfast resume issue-42 issue-43

Everything that ran when it was paused runs on. To start a stopped one, use "holdfast start".`;
