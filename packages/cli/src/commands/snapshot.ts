import type { Command } from "commander";
import { Snapshot } from "holdfast";
import { addGlobalOptions, addQuietOption, type Context, contextOf } from "../context.ts";
import { UsageError } from "../failure.ts";
import { findSandbox } from "../find-sandbox.ts";
import { findSnapshot } from "../find-snapshot.ts";
import { print, printJson } from "../print.ts";
import { ProgressLine } from "../progress-line.ts";
import { addPair } from "../spec-options.ts";
import { renderTable } from "../table.ts";
import { age, ahead, amount, parseSeconds } from "../units.ts";

interface SnapshotFlags {
  name?: string;
  label?: Record<string, string>;
  expires?: number;
}

export function define(command: Command): void {
  addQuietOption(addGlobalOptions(command))
    .argument("<sandbox|ls|rm|inspect>", "the sandbox to copy; or what to do with copies")
    .argument("[names...]", "for ls: of which sandbox; for rm and inspect: which snapshots")
    .option("--name <name>", "a name to find it by: a-z, 0-9 and -")
    .option(
      "-l, --label <NAME=VALUE>",
      "a label (again for more)",
      addPair(() => ""),
    )
    .option("--expires <time>", "remove it by itself after this, such as 12h or 7d", parseSeconds)
    .addHelpText("after", EXAMPLES)
    .action(snapshot);
}

async function snapshot(
  first: string,
  names: string[],
  flags: SnapshotFlags,
  command: Command,
): Promise<void> {
  const context = await contextOf(command);
  switch (first) {
    case "ls":
      return list(context, names[0]);
    case "rm":
      return remove(context, named(names, "rm"));
    case "inspect": {
      const all = named(names, "inspect").map((one) => findSnapshot(context.client, one));
      const found = await Promise.all(all);
      return printJson(found.length === 1 ? found[0]?.info : found.map(({ info }) => info));
    }
    default:
      return make(context, first, flags);
  }
}

async function make(
  { client, output, quiet }: Context,
  meant: string,
  { name, label: labels, expires: expiresInSeconds }: SnapshotFlags,
): Promise<void> {
  const sandbox = await findSandbox(client, meant);
  const progress = new ProgressLine(`copying ${sandbox.name}`, { quiet });
  const onProgress = (bytes: number) => progress.show(amount(bytes));
  const made = await sandbox
    .snapshot({
      ...(name !== undefined && { name }),
      ...(labels !== undefined && { labels }),
      ...(expiresInSeconds !== undefined && { expiresInSeconds }),
      onProgress,
    })
    .finally(() => progress.end());
  await (output === "json" ? printJson(made.info) : print(`${quiet ? made.id : made.name}\n`));
}

async function list({ client, output, quiet }: Context, of: string | undefined): Promise<void> {
  const found =
    of === undefined ? await Snapshot.list({ client }) : await (await findSandbox(client, of)).snapshots();
  const snapshots = found.map(({ info }) => info);
  if (output === "json") return printJson({ snapshots });
  if (quiet) return print(snapshots.map(({ snapshotId }) => `${snapshotId}\n`).join(""));
  const head = ["NAME", "STATE", "SIZE", "FILES", "SANDBOX", "PROVIDER", "AGE", "EXPIRES", "NOTE"];
  const rows = snapshots.map((one) => [
    ...[one.name, one.state, amount(one.sizeBytes), String(one.files), one.sandboxId, one.provider],
    ...[age(one.createdAt), one.expiresAt === undefined ? "-" : ahead(one.expiresAt)],
    one.failure ?? (one.usedBy > 0 ? `in use by ${one.usedBy}` : ""),
  ]);
  await print(renderTable({ head, rows, spare: ["FILES", "SANDBOX", "PROVIDER", "EXPIRES"] }));
}

async function remove({ client, output, quiet }: Context, names: readonly string[]): Promise<void> {
  const removed: string[] = [];
  for (const name of names) {
    const found = await findSnapshot(client, name);
    await found.delete();
    removed.push(found.name);
    if (output === "table") await print(`${quiet ? found.id : found.name}\n`);
  }
  if (output === "json") await printJson({ removed });
}

function named(names: readonly string[], action: string): readonly string[] {
  if (names.length > 0) return names;
  throw new UsageError(
    "which snapshot?",
    `Say: holdfast snapshot ${action} NAME; \`holdfast snapshot ls\` lists them.`,
  );
}

const EXAMPLES = `
Examples:
  holdfast snapshot issue-42 --name before-upgrade     prints its name
  holdfast create --from-snapshot before-upgrade       a new sandbox with those files
  holdfast snapshot issue-42 --expires 7d
  holdfast snapshot ls                                 all; \`ls issue-42\`: of one sandbox
  holdfast snapshot rm before-upgrade                  as soon as nothing is made from it

A snapshot has the files of /workspace and the home directory as they are at one moment, not the processes. A sandbox
that runs stands still while it is copied.`;
