import type { Command } from "commander";
import { addGlobalOptions, contextOf } from "../context.ts";
import { UsageError } from "../failure.ts";
import { findSandbox } from "../find-sandbox.ts";
import { print, printJson } from "../print.ts";

export function define(command: Command): void {
  addGlobalOptions(command)
    .argument("<sandbox>", "its name, its id, or the beginning of its id")
    .addHelpText("after", EXAMPLES)
    .action(release);
}

/** Every call carries the turn and the claim of the environment, and this one ends what it carries. */
async function release(meant: string, _options: object, command: Command): Promise<void> {
  const { HOLDFAST_TURN, HOLDFAST_CLAIM } = process.env;
  if (!HOLDFAST_TURN && !HOLDFAST_CLAIM)
    throw new UsageError(
      "nothing to release: neither HOLDFAST_TURN nor HOLDFAST_CLAIM is set",
      "Set them to what `holdfast turn begin` or `holdfast claim -d` printed.",
    );
  const { client, output } = await contextOf(command);
  const sandbox = await findSandbox(client, meant);
  await sandbox.release();
  await (output === "json" ? printJson({ id: sandbox.id, name: sandbox.name }) : print(`${sandbox.name}\n`));
}

const EXAMPLES = `
Examples:
  export HOLDFAST_CLAIM=$(holdfast claim -d --ttl 10m issue-42)
  holdfast exec issue-42 -- make deploy
  holdfast release issue-42      others may work in it again; what runs inside runs on

It ends the turn in HOLDFAST_TURN and the claim in HOLDFAST_CLAIM. A sandbox made with
--no-persistent goes with its last turn; every other stays as it is.`;
