import type { Command } from "commander";
import type { FileEvent } from "holdfast";
import { addGlobalOptions, contextOf } from "../context.ts";
import { findSandbox } from "../find-sandbox.ts";
import { listenForSignals, unlessInterrupted } from "../interruption.ts";
import { print } from "../print.ts";
import { oneLine } from "../style.ts";

export function define(command: Command): void {
  addGlobalOptions(command)
    .argument("<sandbox>", "its name, its id, or the beginning of its id")
    .argument("<path>", "a directory in it, or one file")
    .option("--no-recursive", "only what is in the directory itself")
    .option("--since <cursor>", "go on after this cursor, which -o json shows")
    .addHelpText("after", EXAMPLES)
    .action(watch);
}

interface Options {
  recursive: boolean;
  since?: string;
}

async function watch(meant: string, path: string, options: Options, command: Command): Promise<void> {
  const { client, output } = await contextOf(command);
  const sandbox = await findSandbox(client, meant);
  const interruption = listenForSignals();
  process.exitCode = await unlessInterrupted(interruption, async () => {
    for await (const event of sandbox.watch(path, { ...options, signal: interruption.signal }))
      await print(output === "json" ? `${JSON.stringify(event)}\n` : line(event));
    return 0;
  });
}

function line(event: FileEvent): string {
  if (event.type === "ready") return "";
  const what = event.type.padEnd(8);
  if (event.type === "resync") return `${what}  ${event.message}\n`;
  const end = event.directory ? "/" : "";
  const path = event.type === "moved" ? `${event.from} -> ${event.path}` : event.path;
  return `${oneLine(`${what}  ${path}${end}`)}\n`;
}

const EXAMPLES = `
Examples:
  holdfast watch issue-42 /workspace
  holdfast watch issue-42 /workspace/app/src --no-recursive -o json

\`resync\` says that something may have been missed: look at the files again. Watching neither wakes a sandbox nor
keeps it awake.`;
