import type { Command } from "commander";
import { addGlobalOptions, addQuietOption } from "../context.ts";
import { forEachSandbox } from "../for-each-sandbox.ts";
import { addQueueOption, type QueueFlag } from "../policy-options.ts";
import { progressOf } from "../progress.ts";

export function define(command: Command): void {
  addQuietOption(addGlobalOptions(addQueueOption(command)), "ids instead of names")
    .argument("<sandboxes...>", "their names, ids, or beginnings of ids")
    .addHelpText("after", EXAMPLES)
    .action(start);
}

async function start(meant: string[], options: QueueFlag, command: Command): Promise<void> {
  const { queue: queueSeconds } = options;
  await forEachSandbox(command, meant, async (sandbox, context) => {
    const { onProgress, end } = progressOf(context);
    return (await sandbox.start({ queueSeconds, onProgress }).finally(end)).info;
  });
}

const EXAMPLES = `
Examples:
  holdfast start issue-42
  holdfast start issue-42 issue-43

Files are as they were; what ran when it was stopped does not run again by itself.`;
