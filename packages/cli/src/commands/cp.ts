import { mkdirSync, realpathSync, statSync } from "node:fs";
import { dirname } from "node:path";
import type { Command } from "commander";
import { type FileInfo, HoldfastError, type Sandbox } from "holdfast";
import { addGlobalOptions, addQuietOption, contextOf } from "../context.ts";
import { fetchFile } from "../copy/fetch-file.ts";
import { fetchTree } from "../copy/fetch-tree.ts";
import { inTheWay } from "../copy/merge.ts";
import { packed } from "../copy/pack.ts";
import { directionOf, finalPath, placeOf } from "../copy/places.ts";
import { Progress } from "../copy/progress.ts";
import { UsageError } from "../failure.ts";
import { findSandbox } from "../find-sandbox.ts";
import { printJson } from "../print.ts";

// Smaller files go in one request; larger ones in parts that survive a lost connection.
const IN_PARTS_BYTES = 8 * 1024 * 1024;

export function define(command: Command): void {
  addQuietOption(addGlobalOptions(command), "no progress")
    .argument("<source>", "a file or directory: here, or SANDBOX:/path, or - for a tar archive from stdin")
    .argument("<destination>", "where to: here, or SANDBOX:/path, or - for a tar archive to stdout")
    .addHelpText("after", EXAMPLES)
    .action(cp);
}

async function cp(source: string, destination: string, _options: object, command: Command): Promise<void> {
  const direction = directionOf(placeOf(source), placeOf(destination));
  const context = await contextOf(command);
  const name = direction.to === "sandbox" ? direction.into.sandbox : direction.from.sandbox;
  const sandbox = await findSandbox(context.client, name);
  const { from, into } = direction;
  const { quiet } = context;
  const copied =
    direction.to === "sandbox"
      ? from.kind === "local"
        ? await copyIn(sandbox, { source: from.path, destination: direction.into.path, quiet })
        : await unpackIn(sandbox, direction.into.path)
      : into.kind === "local"
        ? await copyOut(sandbox, { source: direction.from.path, destination: into.path, quiet })
        : await packOut(sandbox, direction.from.path);
  if (context.output === "json" && copied !== undefined) await printJson({ copied });
}

interface Copy {
  source: string;
  destination: string;
  quiet: boolean;
}

async function copyIn(sandbox: Sandbox, { source, destination, quiet }: Copy): Promise<string> {
  const facts = statSync(source, { throwIfNoEntry: false });
  if (facts === undefined)
    throw new UsageError(
      `there is no ${source}`,
      "Name what is here, or SANDBOX:/path for what is in a sandbox.",
    );
  const found = await infoOf(sandbox, destination);
  const path = finalPath(destination, source, { isDirectory: found?.type === "directory" });
  const progress = new Progress(source, { total: facts.isDirectory() ? undefined : facts.size, quiet });
  try {
    if (facts.isDirectory()) {
      const archive = streamOf(progress.counting(packed(source)));
      await sandbox.files.writeTar(path, archive, { parents: true });
    } else {
      await sendFile(sandbox, { source, path, mode: facts.mode & 0o7777, progress });
    }
  } finally {
    progress.end();
  }
  return `${sandbox.name}:${path}`;
}

async function sendFile(
  sandbox: Sandbox,
  { source, path, mode, progress }: { source: string; path: string; mode: number; progress: Progress },
): Promise<void> {
  const file = Bun.file(source);
  const options = { mode, parents: true };
  if (file.size < IN_PARTS_BYTES) {
    await sandbox.files.write(path, await file.bytes(), options);
    return;
  }
  // The same file to the same place: said again after an interruption, it goes on where it was.
  const { mtimeMs, ino, size } = statSync(source);
  const same = JSON.stringify([sandbox.id, path, source, mtimeMs, ino, size]);
  const uploadId = `cp-${new Bun.CryptoHasher("sha256").update(same).digest("hex").slice(0, 32)}`;
  await sandbox.files.upload(path, file, { ...options, uploadId, onProgress: (at) => progress.at(at) });
}

async function copyOut(sandbox: Sandbox, { source, destination, quiet }: Copy): Promise<string> {
  const info = await sandbox.files.stat(source, { follow: true });
  const found = statSync(destination, { throwIfNoEntry: false });
  const named = finalPath(destination, source, { isDirectory: found?.isDirectory() === true });
  mkdirSync(dirname(named), { recursive: true });
  const there = statSync(named, { throwIfNoEntry: false });
  const path = there === undefined ? named : realpathSync(named); // a symlink stays, and what it leads to is replaced
  if (there !== undefined && there.isDirectory() !== (info.type === "directory")) throw inTheWay(path);
  const progress = new Progress(source, { total: info.type === "file" ? info.sizeBytes : undefined, quiet });
  try {
    if (info.type === "directory") await fetchTree({ sandbox, source, path, progress });
    else await fetchFile({ sandbox, source, info, path, progress });
  } finally {
    progress.end();
  }
  return named;
}

/** `docker cp` takes and gives archives the same way. */
async function unpackIn(sandbox: Sandbox, destination: string): Promise<string> {
  await sandbox.files.writeTar(destination, Bun.stdin.stream(), { parents: true });
  return `${sandbox.name}:${destination}`;
}

async function packOut(sandbox: Sandbox, source: string): Promise<undefined> {
  const archive = await sandbox.files.readTar(source);
  for await (const piece of archive) {
    if (!process.stdout.write(piece)) await new Promise((resolve) => process.stdout.once("drain", resolve));
  }
}

/** `undefined` if there is nothing. */
async function infoOf(sandbox: Sandbox, path: string): Promise<FileInfo | undefined> {
  try {
    return await sandbox.files.stat(path, { follow: true });
  } catch (error) {
    if (error instanceof HoldfastError && error.code === "not_found") return undefined;
    throw error;
  }
}

function streamOf(pieces: AsyncGenerator<Uint8Array>): ReadableStream<Uint8Array> {
  return new ReadableStream<Uint8Array>(
    {
      async pull(to) {
        const { done, value } = await pieces.next();
        if (done) to.close();
        else to.enqueue(value);
      },
      async cancel() {
        await pieces.return(undefined);
      },
    },
    { highWaterMark: 0 },
  );
}

const EXAMPLES = `
A directory goes with all it has: modes, times, symlinks, hard links. Into a directory that is there, or a path that
ends with /, it goes under its own name. If there is a directory of that name, too, the two are merged: what else it has
stays, a file replaces a file; where one has a directory and the other something else, nothing is copied. Missing
directories above are made. A large file that was interrupted goes on where it was if you say it again, either way.

Examples:
  holdfast cp app.py issue-42:/workspace/          a file
  holdfast cp ./src issue-42:/workspace/app        a directory
  holdfast cp issue-42:/workspace/out.csv .        and back
  tar -cz src | holdfast cp - issue-42:/workspace  an archive from stdin, plain or gzipped
  holdfast cp issue-42:/workspace - | tar -tv      one to stdout`;
