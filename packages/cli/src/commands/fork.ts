import type { Command } from "commander";
import type { SandboxEvent, SandboxInfo } from "holdfast";
import { addGlobalOptions, addQuietOption, contextOf } from "../context.ts";
import { findSandbox } from "../find-sandbox.ts";
import { addEndOptions, type EndOptions, endOf } from "../policy-options.ts";
import { print, printJson } from "../print.ts";
import { copied } from "../progress.ts";
import { ProgressLine } from "../progress-line.ts";
import { addPair } from "../spec-options.ts";
import { parseCount } from "../units.ts";

interface ForkFlags extends EndOptions {
  count: number;
  name?: string;
  label?: Record<string, string>;
}

export function define(command: Command): void {
  addQuietOption(addGlobalOptions(addEndOptions(command)))
    .argument("<sandbox>", "its name, its id, or the beginning of its id")
    .option("--count <n>", "how many", parseCount, 1)
    .option("--name <name>", "call them NAME-1, NAME-2 and so on")
    .option(
      "-l, --label <NAME=VALUE>",
      "a label beside those of the parent (again for more)",
      addPair(() => ""),
    )
    .addHelpText("after", EXAMPLES)
    .action(fork);
}

async function fork(meant: string, flags: ForkFlags, command: Command): Promise<void> {
  const { client, output, quiet } = await contextOf(command);
  const sandbox = await findSandbox(client, meant);
  const { name, label: labels, count } = flags;
  const progress = new ProgressLine(`forking ${sandbox.name}`, { quiet });
  progress.show(`${count} times`);
  const restoring = new Map<string, { copiedBytes: number; sizeBytes: number }>();
  const onProgress = ({ type, detail }: SandboxEvent, { id }: SandboxInfo): void => {
    if (type !== "restoring") return;
    restoring.set(id, { copiedBytes: Number(detail.copiedBytes), sizeBytes: Number(detail.sizeBytes) });
    const sum = (of: "copiedBytes" | "sizeBytes") =>
      [...restoring.values()].reduce((all, one) => all + one[of], 0);
    progress.show(copied({ copiedBytes: sum("copiedBytes"), sizeBytes: sum("sizeBytes") }));
  };
  const made = await sandbox
    .fork(count, {
      onProgress,
      ...endOf(flags),
      ...(name !== undefined && { name }),
      ...(labels !== undefined && { labels }),
    })
    .finally(() => progress.end());
  if (output === "json") return printJson({ sandboxes: made.map(({ info }) => info) });
  await print(made.map(({ id, name }) => `${quiet ? id : name}\n`).join(""));
}

const EXAMPLES = `
Examples:
  holdfast fork issue-42                         prints the new one's name
  holdfast fork issue-42 --count 10 --name attempt  attempt-1 to attempt-10
  holdfast fork issue-42 --count 3 --on-idle remove --lifetime 10m

Each has its own copy of the files, and the parent's spec and policy but for what is said. The parent runs on; it stands
still for the time of one copy. All are made, or none.`;
