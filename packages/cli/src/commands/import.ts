import type { Command } from "commander";
import { Snapshot } from "holdfast";
import { addGlobalOptions, addQuietOption, contextOf } from "../context.ts";
import { UsageError } from "../failure.ts";
import { print, printJson } from "../print.ts";
import { ProgressLine } from "../progress-line.ts";
import { amount, parseSeconds } from "../units.ts";

interface ImportFlags {
  name?: string;
  provider?: string;
  expires?: number;
}

export function define(command: Command): void {
  addQuietOption(addGlobalOptions(command))
    .argument("<file>", "what `holdfast export` has written; - is stdin")
    .option("--name <name>", "a name to find it by: a-z, 0-9 and -")
    .option("--provider <provider>", "where it is to be, and the sandboxes made from it")
    .option("--expires <time>", "remove it by itself after this, such as 12h or 7d", parseSeconds)
    .addHelpText("after", EXAMPLES)
    .action(importSnapshot);
}

async function importSnapshot(file: string, flags: ImportFlags, command: Command): Promise<void> {
  const { client, output, quiet } = await contextOf(command);
  const { name, provider, expires: expiresInSeconds } = flags;
  const progress = new ProgressLine("importing", { quiet });
  const archive = counted(await opened(file), (bytes) => progress.show(amount(bytes)));
  const made = await Snapshot.import(archive, { client, name, provider, expiresInSeconds }).finally(() =>
    progress.end(),
  );
  await (output === "json" ? printJson(made.info) : print(`${quiet ? made.id : made.name}\n`));
}

async function opened(file: string): Promise<ReadableStream<Uint8Array>> {
  if (file === "-") return Bun.stdin.stream();
  if (!(await Bun.file(file).exists()))
    throw new UsageError(`there is no file ${file}`, "Name what `holdfast export` has written; - is stdin.");
  return Bun.file(file).stream();
}

function counted(
  stream: ReadableStream<Uint8Array>,
  onBytes: (bytes: number) => void,
): ReadableStream<Uint8Array> {
  let bytes = 0;
  return stream.pipeThrough(
    new TransformStream<Uint8Array, Uint8Array>({
      transform(chunk, controller) {
        bytes += chunk.length;
        onBytes(bytes);
        controller.enqueue(chunk);
      },
    }),
  );
}

const EXAMPLES = `
Examples:
  holdfast import before.tar --name before-upgrade
  gunzip < before.tar.gz | holdfast import - --provider docker
  holdfast create --from-snapshot before-upgrade

The archive is checked before anything is kept: names that lead elsewhere, devices and a wrong checksum are refused.`;
