import type { Command } from "commander";
import { addGlobalOptions, addQuietOption } from "../context.ts";
import { forEachSandbox } from "../for-each-sandbox.ts";
import { parseSeconds } from "../units.ts";

interface RmOptions {
  force?: true;
  wait?: number;
}

export function define(command: Command): void {
  addQuietOption(addGlobalOptions(command), "ids instead of names")
    .argument("<sandboxes...>", "their names, ids, or beginnings of ids")
    .option("-f, --force", "give what runs inside no time to end by itself")
    .option("--wait <time>", "how long to wait for the evidence that it is gone (default: 1m)", parseWait)
    .addHelpText("after", EXAMPLES)
    .action(rm);
}

/** Not to wait at all is a wish, too. */
function parseWait(text: string): number {
  return text === "0" ? 0 : parseSeconds(text);
}

async function rm(meant: string[], options: RmOptions, command: Command): Promise<void> {
  const { force, wait: waitSeconds } = options;
  await forEachSandbox(command, meant, async (sandbox) => {
    await sandbox.delete({ force, waitSeconds });
    return { id: sandbox.id, name: sandbox.name, state: waitSeconds === 0 ? "deleting" : "deleted" };
  });
}

const EXAMPLES = `
Examples:
  holdfast rm issue-42
  holdfast rm --force --wait 10s issue-42 issue-43
  holdfast rm $(holdfast ls -q --label team=web)`;
