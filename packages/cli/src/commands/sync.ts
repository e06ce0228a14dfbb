import { type Command, Option } from "commander";
import type { Sandbox, SyncOptions, SyncResult } from "holdfast";
import { addGlobalOptions, type Context, contextOf } from "../context.ts";
import { UsageError } from "../failure.ts";
import { findSandbox } from "../find-sandbox.ts";
import { type Interruption, listenForSignals, unlessInterrupted } from "../interruption.ts";
import { print, printJson } from "../print.ts";
import { oneLine } from "../style.ts";
import { changesOf } from "../sync-changes.ts";

export function define(command: Command): void {
  addGlobalOptions(command)
    .argument("<local>", "a directory of this machine")
    .argument("<sandbox:path>", "a directory of a sandbox")
    .addOption(
      new Option("--direction <way>", "up: to the sandbox, down: from it, both: what changed on either side")
        .choices(["up", "down", "both"])
        .default("up"),
    )
    .option("--delete", "what was deleted on one side is deleted on the other")
    .option("--ignore <pattern>", "a line as in a .gitignore (again for more)", collect)
    .option("--watch", "go on with what changes from now on, until Ctrl-C")
    .addHelpText("after", EXAMPLES)
    .action(sync);
}

interface Options {
  direction: "up" | "down" | "both";
  delete?: true;
  ignore?: string[];
  watch?: true;
}

/** Something was left undone that a person has to decide. */
const CONFLICTS = 3;

async function sync(local: string, place: string, options: Options, command: Command): Promise<void> {
  const [, meant = "", remote = ""] = /^([^:/]+):(\/.*)$/.exec(place) ?? [];
  if (meant === "")
    throw new UsageError(`"${place}" is no place in a sandbox`, "Say where to: SANDBOX:/an/absolute/path");
  const { client, output } = await contextOf(command);
  const sandbox = await findSandbox(client, meant);
  const interruption = listenForSignals();
  const job = { sandbox, local, remote, output, interruption, options };
  process.exitCode = await unlessInterrupted(interruption, () =>
    options.watch ? syncForever(job) : syncOnce(job),
  );
}

interface Job {
  sandbox: Sandbox;
  local: string;
  remote: string;
  output: Context["output"];
  interruption: Interruption;
  options: Options;
}

async function syncOnce({ sandbox, local, remote, output, interruption, options }: Job): Promise<number> {
  const isTty = process.stderr.isTTY;
  const { direction, ignore } = options;
  const onProgress: SyncOptions["onProgress"] = ({ done, total }) =>
    process.stderr.write(`\r\u001b[K${done} of ${total} files${done === total ? "\r\u001b[K" : ""}`);
  const result = await sandbox.files.sync(local, remote, {
    ...{ direction, ignore, delete: options.delete === true, signal: interruption.signal },
    ...(isTty && { onProgress }),
  });
  const inJson = options.watch ? () => print(`${JSON.stringify(result)}\n`) : () => printJson(result);
  await (output === "json" ? inJson() : print(textOf(result, options)));
  return result.conflicts.length > 0 ? CONFLICTS : 0;
}

/** Ends only by a signal. */
async function syncForever(job: Job): Promise<number> {
  const { sandbox, local, remote, interruption, options } = job;
  await sandbox.files.mkdir(remote, { parents: true });
  const changes = changesOf({ sandbox, local, remote, ...options, signal: interruption.signal });
  await changes.ready;
  for (;;) {
    await syncOnce(job);
    await changes.next();
  }
}

function textOf(result: SyncResult, { watch }: Options): string {
  const { uploaded, downloaded, deletedRemote, deletedLocal, unchanged, conflicts, skipped } = result;
  const changes = [
    ...uploaded.map((path) => `up        ${path}`),
    ...downloaded.map((path) => `down      ${path}`),
    ...deletedRemote.map((path) => `deleted   ${path} (in the sandbox)`),
    ...deletedLocal.map((path) => `deleted   ${path} (here)`),
    ...conflicts.map(({ path, reason }) => `conflict  ${path}: ${reason}`),
  ];
  const left = watch ? [] : skipped.map(({ path, reason }) => `left      ${path}: ${reason}`);
  const done = `${uploaded.length} up, ${downloaded.length} down, ${deletedRemote.length + deletedLocal.length} deleted`;
  const rest = `${unchanged} unchanged, ${conflicts.length} conflicts`;
  const lines = [...changes, ...left, ...(watch && changes.length === 0 ? [] : [`${done}, ${rest}`])];
  return lines.map((line) => `${oneLine(line)}\n`).join("");
}

function collect(value: string, before: string[] = []): string[] {
  return [...before, value];
}

const EXAMPLES = `
Examples:
  holdfast sync ./app issue-42:/workspace/app
  holdfast sync ./app issue-42:/workspace/app --direction both --watch
  holdfast sync ./results issue-42:/workspace/results --direction down --ignore '*.tmp'

Only what changed since the last time travels, and .gitignore files are honoured. A file that changed on both sides is a
conflict: it is told, touched on neither side, and makes the exit code 3. What is not synced is listed as left: links
that lead out of the directory, empty directories, names that are not UTF-8.`;
