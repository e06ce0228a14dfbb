import type { Command } from "commander";
import { Sandbox } from "holdfast";
import { COMMAND_HELP, toCommand } from "../command-line.ts";
import { addGlobalOptions, addQuietOption, type Context, contextOf } from "../context.ts";
import { createTelling } from "../create-telling.ts";
import { FAILED_TO_RUN, printFailure } from "../failure.ts";
import { withSnapshotFound } from "../find-snapshot.ts";
import { type Interruption, listenForSignals } from "../interruption.ts";
import { note } from "../live.ts";
import { addQueueOption, type QueueFlag } from "../policy-options.ts";
import { runCommand } from "../run-command.ts";
import { addSpecOptions, type SpecOptions, specOf } from "../spec-options.ts";
import { type TakenStdin, takeStdin } from "../stdin.ts";
import { parseDurationMs } from "../units.ts";

interface RunOptions extends SpecOptions, QueueFlag {
  keep?: true;
  untilGone?: true;
  timeout?: number;
  workdir?: string;
  stdin: boolean;
}

export function define(command: Command): void {
  addQuietOption(
    addGlobalOptions(addQueueOption(addSpecOptions(command))),
    "no progress and no notes of ours",
  )
    .argument("<command...>", COMMAND_HELP)
    .option("--keep", "keep the sandbox afterwards")
    .option("--until-gone", "return when the sandbox is proved gone, not when its deletion is on record")
    .option("--timeout <time>", "end the command after this time, such as 30s or 5m", parseDurationMs)
    .option("-w, --workdir <dir>", "where to run it")
    .option("-n, --no-stdin", "give it an empty stdin, whatever is piped to us")
    .passThroughOptions()
    .addHelpText("after", EXAMPLES)
    .action(run);
}

async function run(words: string[], options: RunOptions, command: Command): Promise<void> {
  process.exitCode = FAILED_TO_RUN;
  const context = await contextOf(command);
  // Before there is a sandbox: a Ctrl-C while it is made must not leave it behind.
  const interruption = listenForSignals();
  const stdin = takeStdin({ wanted: options.stdin });
  const sandbox = await make(options, { context, interruption });
  if (options.keep && !context.quiet) await note(`the sandbox is kept: ${sandbox.name} (${sandbox.id})`);
  try {
    process.exitCode =
      interruption.exitCode() ?? (await runIn(sandbox, { words, options, context, stdin, interruption }));
  } finally {
    if (!options.keep) await remove(sandbox, options);
  }
}

/** Without --keep it is not persistent: if we are killed before we can delete it, the server does. */
async function make(
  options: RunOptions,
  { context, interruption: { signal } }: { context: Context; interruption: Interruption },
): Promise<Sandbox> {
  const { keep, queue: queueSeconds } = options;
  const { client } = context;
  const spec = await withSnapshotFound(client, specOf(keep ? options : { ...options, persistent: false }));
  const asked = { client, idempotencyKey: crypto.randomUUID() };
  try {
    return await createTelling(spec, { ...asked, queueSeconds, signal }, context);
  } catch (error) {
    if (!signal.aborted) throw error;
    // It may be under way: the same call again says which it is, so that it can be deleted.
    return Sandbox.create(spec, { ...asked, wait: false });
  }
}

interface InSandbox {
  words: string[];
  options: RunOptions;
  context: Context;
  stdin: Promise<TakenStdin>;
  interruption: Interruption;
}

function runIn(
  sandbox: Sandbox,
  { words, options, context, stdin, interruption }: InSandbox,
): Promise<number> {
  const { workdir: cwd, timeout: timeoutMs } = options;
  return runCommand({
    sandbox,
    command: toCommand(words),
    options: { cwd, timeoutMs },
    output: context.output,
    stdin,
    interruption,
    also: { sandboxId: sandbox.id },
  });
}

/**
 * Once the server has the deletion on record it happens, also if the server is killed; whoever ran a command need not
 * wait for that. The command's own outcome stands, whatever becomes of it.
 */
async function remove(sandbox: Sandbox, { untilGone }: RunOptions): Promise<void> {
  try {
    await sandbox.delete({ force: true, ...(!untilGone && { waitSeconds: 0 }) });
  } catch (error) {
    await note(`the sandbox ${sandbox.id} could not be seen to be gone yet`);
    await printFailure(error, "table"); // beside the note, which is for people, too
  }
}

const EXAMPLES = `
Examples:
  holdfast run -- python3 -c 'print(6 * 7)'
  holdfast run --network none --memory 512m "make test && ls build"
  cat data.csv | holdfast run -- sort -u
  holdfast run --keep --name issue-42 "git clone https://example.org/app.git"

The exit code is the command's own; 124 after --timeout, 125 if it could not be run.`;
