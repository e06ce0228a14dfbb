import type { Command } from "commander";
import { addGlobalOptions, addQuietOption } from "../context.ts";
import { forEachSandbox } from "../for-each-sandbox.ts";

export function define(command: Command): void {
  addQuietOption(addGlobalOptions(command), "ids instead of names")
    .argument("<sandboxes...>", "their names, ids, or beginnings of ids")
    .addHelpText("after", EXAMPLES)
    .action(pause);
}

async function pause(meant: string[], _options: object, command: Command): Promise<void> {
  await forEachSandbox(command, meant, async (sandbox) => (await sandbox.pause()).info);
}

const EXAMPLES = `
Examples:
  holdfast pause issue-42
  holdfast pause issue-42 issue-43

Its processes stay as they are, with all they have in memory, and use no cpu. A next command resumes it, and so does
"holdfast resume". One that stays paused for its lifetime is idle, and ends as it would then. Not every provider can
pause: see "holdfast providers".`;
