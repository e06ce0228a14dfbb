import type { Command } from "commander";
import { type Client, HoldfastError, Sandbox } from "holdfast";
import { addGlobalOptions, addQuietOption, contextOf } from "../context.ts";
import { UsageError } from "../failure.ts";
import { withSnapshotFound } from "../find-snapshot.ts";
import { addQueueOption, type QueueFlag } from "../policy-options.ts";
import { print, printJson } from "../print.ts";
import { progressOf } from "../progress.ts";
import { addSpecOptions, type SpecOptions, specOf } from "../spec-options.ts";

interface CreateOptions extends SpecOptions, QueueFlag {
  reuse?: true;
  wait: boolean;
}

export function define(command: Command): void {
  addQuietOption(addGlobalOptions(addQueueOption(addSpecOptions(command))), "no progress, only the id")
    .option("--reuse", "take the sandbox of this --name if there is one")
    .option("--no-wait", "do not wait until it runs")
    .addHelpText("after", EXAMPLES)
    .action(create);
}

async function create(options: CreateOptions, command: Command): Promise<void> {
  const { client, output, quiet } = await contextOf(command);
  const progress = progressOf({ output, quiet });
  const sandbox = await make(options, client, progress.onProgress).finally(progress.end);
  await (output === "json" ? printJson(sandbox.info) : print(`${sandbox.id}\n`));
}

async function make(
  options: CreateOptions,
  client: Client,
  onProgress: ReturnType<typeof progressOf>["onProgress"],
): Promise<Sandbox> {
  const spec = await withSnapshotFound(client, specOf(options));
  const { queue: queueSeconds, wait } = options;
  if (!options.reuse)
    return Sandbox.create(spec, { client, wait, queueSeconds, onProgress }).catch(suggestReuse);
  const { name } = spec;
  if (name === undefined)
    throw new UsageError("--reuse needs a --name", "It says which sandbox to take: --name NAME --reuse");
  if (!wait) throw new UsageError("--reuse waits until the sandbox runs", "Leave out --no-wait.");
  return Sandbox.getOrCreate({ ...spec, name }, { client, queueSeconds, onProgress });
}

// The server's own hint speaks of routes.
function suggestReuse(error: unknown): never {
  if (!(error instanceof HoldfastError) || error.code !== "already_exists") throw error;
  const hint = "Add --reuse to take that one, or choose another name.";
  throw new HoldfastError(error.code, error.message, { hint, details: error.details, cause: error });
}

const EXAMPLES = `
Examples:
  holdfast create                                    prints its id
  holdfast create --name issue-42 --reuse            the same one tomorrow
  holdfast create --network none --memory 1g --cpus 2 --label team=web
  holdfast create --lifetime 2h --on-idle remove     gone after two idle hours
  holdfast create --no-persistent                    gone when its last turn ends
  holdfast create --queue 5m                         wait for room

Idle is: no command, no attached terminal, no open turn, no touch, and nothing inside that burns CPU or writes output.`;
