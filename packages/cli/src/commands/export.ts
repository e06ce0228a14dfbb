import { createWriteStream } from "node:fs";
import { rename, rm } from "node:fs/promises";
import type { Command } from "commander";
import { Snapshot } from "holdfast";
import { addGlobalOptions, contextOf } from "../context.ts";
import { UsageError } from "../failure.ts";
import { print, printJson, write } from "../print.ts";
import { ProgressLine } from "../progress-line.ts";
import { amount } from "../units.ts";

export function define(command: Command): void {
  addGlobalOptions(command)
    .argument("<snapshot>", "its name or its id")
    .option("-f, --file <file>", "write it there; without it, to stdout")
    .addHelpText("after", EXAMPLES)
    .action(exportSnapshot);
}

async function exportSnapshot(meant: string, options: { file?: string }, command: Command): Promise<void> {
  const { client, output } = await contextOf(command);
  if (options.file === undefined && process.stdout.isTTY)
    throw new UsageError("an archive is no text", "Name a --file, or send it on with | or >.");
  const snapshot = await Snapshot.get(meant, { client });
  const archive = await snapshot.export();
  const { file } = options;
  if (file === undefined) return pour(archive, process.stdout, snapshot.info.sizeBytes);
  // A file of this name is a whole archive, or the one that was there before.
  const draft = `${file}.part`;
  try {
    const out = createWriteStream(draft);
    await pour(archive, out as unknown as NodeJS.WriteStream, snapshot.info.sizeBytes);
    await new Promise((resolve, reject) => out.end(resolve).on("error", reject));
    await rename(draft, file);
  } catch (error) {
    await rm(draft, { force: true });
    throw error;
  }
  await (output === "json" ? printJson(snapshot.info) : print(`${file}\n`));
}

async function pour(
  archive: ReadableStream<Uint8Array>,
  out: NodeJS.WriteStream,
  sizeBytes: number,
): Promise<void> {
  const progress = new ProgressLine("exporting");
  let done = 0;
  try {
    for await (const chunk of archive) {
      await write(out, chunk);
      done += chunk.length;
      progress.show(`${amount(done)} of ${amount(sizeBytes)}`);
    }
  } finally {
    progress.end();
  }
}

const EXAMPLES = `
Examples:
  holdfast export before-upgrade -f before.tar
  holdfast export before-upgrade | ssh other holdfast import - --name before-upgrade
  holdfast export before-upgrade | gzip > before.tar.gz

One tar archive, which every provider can take. Its first entry, manifest.json, says what is in it, with a checksum.`;
