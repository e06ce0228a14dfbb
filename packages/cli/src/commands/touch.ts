import type { Command } from "commander";
import { addGlobalOptions, addQuietOption } from "../context.ts";
import { forEachSandbox } from "../for-each-sandbox.ts";

export function define(command: Command): void {
  addQuietOption(addGlobalOptions(command), "ids instead of names")
    .argument("<sandboxes...>", "their names, ids, or beginnings of ids")
    .addHelpText("after", EXAMPLES)
    .action(touch);
}

async function touch(meant: string[], _options: object, command: Command): Promise<void> {
  await forEachSandbox(command, meant, async (sandbox) => (await sandbox.touch()).info);
}

const EXAMPLES = `
Examples:
  holdfast touch issue-42           its idle time begins anew
  holdfast touch $(holdfast ls -q --label team=web)`;
