import { createWriteStream } from "node:fs";
import { rename, rm } from "node:fs/promises";
import type { Command } from "commander";
import type { Snapshot } from "holdfast";
import { addGlobalOptions, addQuietOption, contextOf } from "../context.ts";
import { UsageError } from "../failure.ts";
import { findSnapshot } from "../find-snapshot.ts";
import { print, printJson, write } from "../print.ts";
import { ProgressLine } from "../progress-line.ts";
import { paint } from "../style.ts";
import { amount } from "../units.ts";

export function define(command: Command): void {
  addQuietOption(addGlobalOptions(command), "no progress, and no name of the file")
    .argument("<snapshot>", "its name or its id")
    .option("-f, --file <file>", "write it there; without it, to stdout")
    .addHelpText("after", EXAMPLES)
    .action(exportSnapshot);
}

async function exportSnapshot(meant: string, options: { file?: string }, command: Command): Promise<void> {
  const { client, output, quiet } = await contextOf(command);
  if (options.file === undefined && process.stdout.isTTY)
    throw new UsageError("an archive is no text", "Name a --file, or send it on with | or >.");
  const snapshot = await findSnapshot(client, meant);
  const archive = await snapshot.export();
  await sayLeftOut(snapshot);
  const { file } = options;
  const { sizeBytes } = snapshot.info;
  if (file === undefined) return pour(archive, { out: process.stdout, sizeBytes, quiet });
  // A file of this name is a whole archive, or the one that was there before.
  const draft = `${file}.part`;
  try {
    const out = createWriteStream(draft);
    await pour(archive, { out: out as unknown as NodeJS.WriteStream, sizeBytes, quiet });
    await new Promise((resolve, reject) => out.end(resolve).on("error", reject));
    await rename(draft, file);
  } catch (error) {
    await rm(draft, { force: true });
    throw error;
  }
  if (output === "json") return printJson(snapshot.info);
  if (!quiet) await print(`${file}\n`);
}

/** To whoever looks on: stdout may be the archive. */
async function sayLeftOut({ info }: Snapshot): Promise<void> {
  const leftOut = info.parts.filter(({ image, leftOut }) => image !== undefined || leftOut);
  for (const { name, files, sizeBytes } of leftOut)
    await write(
      process.stderr,
      `${paint("yellow", "note:", process.stderr)} the ${name} (${files} files, ${amount(sizeBytes)}) does not travel in an archive\n`,
    );
}

async function pour(
  archive: ReadableStream<Uint8Array>,
  { out, sizeBytes, quiet }: { out: NodeJS.WriteStream; sizeBytes: number; quiet: boolean },
): Promise<void> {
  const progress = new ProgressLine("exporting", { quiet });
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

One tar archive, which every provider can take. Its first entry, manifest.json, says what is in it, with a checksum, and
what is left out: what was installed into a container (its layer) stays with its provider.`;
