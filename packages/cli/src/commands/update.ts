import type { Command } from "commander";
import { addGlobalOptions, addQuietOption } from "../context.ts";
import { UsageError } from "../failure.ts";
import { forEachSandbox } from "../for-each-sandbox.ts";
import { addEndOptions, type EndOptions, endOf } from "../policy-options.ts";
import { addPair } from "../spec-options.ts";

interface UpdateOptions extends EndOptions {
  label?: Record<string, string>;
}

export function define(command: Command): void {
  addQuietOption(addGlobalOptions(addEndOptions(command)), "ids instead of names")
    .argument("<sandboxes...>", "their names, ids, or beginnings of ids")
    .option(
      "-l, --label <NAME=VALUE>",
      "a label, in place of those it has (again for more)",
      addPair(() => ""),
    )
    .addHelpText("after", EXAMPLES)
    .action(update);
}

async function update(meant: string[], options: UpdateOptions, command: Command): Promise<void> {
  const { label: labels } = options;
  const change = { ...endOf(options), ...(labels !== undefined && { labels }) };
  if (Object.keys(change).length === 0)
    throw new UsageError("nothing to change", "Name at least one option, such as --lifetime 2h.");
  await forEachSandbox(command, meant, async (sandbox) => (await sandbox.update(change)).info);
}

const EXAMPLES = `
Examples:
  holdfast update issue-42 --lifetime 2h
  holdfast update issue-42 --on-idle keep
  holdfast update issue-42 --max-lifetime none
  holdfast update issue-42 --label team=web --label stage=review`;
