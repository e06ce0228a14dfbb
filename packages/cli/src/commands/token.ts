import { Argument, type Command } from "commander";
import { Operator } from "holdfast";
import { addGlobalOptions, contextOf } from "../context.ts";
import { print, printJson } from "../print.ts";

export function define(command: Command): void {
  addGlobalOptions(command)
    .addArgument(new Argument("<action>", "make another token; the old one ends at once").choices(["rotate"]))
    .addHelpText("after", EXAMPLES)
    .action(token);
}

async function token(_action: "rotate", _options: object, command: Command): Promise<void> {
  const { client, output } = await contextOf(command);
  const made = await (await Operator.connect({ client })).rotateToken();
  await (output === "json" ? printJson({ token: made }) : print(`${made}\n`));
}

const EXAMPLES = `
Examples:
  holdfast token rotate                          prints the new token
  export HOLDFAST_TOKEN=$(holdfast token rotate)

Programs on the server's own machine find it by themselves; all others must be given it, and browsers sign in again.
What runs in sandboxes, and terminals that are open, go on. Where no server runs: remove the file token from its data
dir, and the next start makes one.`;
