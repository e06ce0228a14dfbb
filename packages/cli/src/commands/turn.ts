import { Argument, type Command } from "commander";
import { addGlobalOptions, contextOf } from "../context.ts";
import { UsageError } from "../failure.ts";
import { findSandbox } from "../find-sandbox.ts";
import { print, printJson } from "../print.ts";

export function define(command: Command): void {
  addGlobalOptions(command)
    .addArgument(new Argument("<action>", "begin one, or end it").choices(["begin", "end"]))
    .argument("<sandbox>", "its name, its id, or the beginning of its id")
    .argument("[turn]", "the turn's id: chosen by you, or printed by `begin`")
    .addHelpText("after", EXAMPLES)
    .action(turn);
}

async function turn(
  action: "begin" | "end",
  meant: string,
  turnId: string | undefined,
  _options: object,
  command: Command,
): Promise<void> {
  const { client, output } = await contextOf(command);
  const sandbox = await findSandbox(client, meant);
  if (action === "begin") {
    const begun = await sandbox.beginTurn({ turnId });
    const { startedAt } = begun;
    return output === "json" ? printJson({ turnId: begun.turnId, startedAt }) : print(`${begun.turnId}\n`);
  }
  const id = turnId ?? process.env.HOLDFAST_TURN;
  if (!id)
    throw new UsageError(
      "which turn?",
      "Name the id that `holdfast turn begin` printed, or set HOLDFAST_TURN to it.",
    );
  const ended = await sandbox.endTurn(id);
  await (output === "json" ? printJson(ended) : print(`${ended.turnId}\n`));
}

const EXAMPLES = `
Examples:
  export HOLDFAST_TURN=$(holdfast turn begin issue-42)
  holdfast exec issue-42 -- npm test      is a part of the turn, and renews it
  holdfast turn end issue-42              a sandbox made with --no-persistent goes with its last turn

An open turn holds the reaper off. One that no call renews for --turn-timeout ends by itself.`;
