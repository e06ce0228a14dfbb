import type { Command } from "commander";
import { Operator } from "holdfast";
import { addGlobalOptions, contextOf } from "../context.ts";
import { print, printJson } from "../print.ts";

export function define(command: Command): void {
  addGlobalOptions(command).addHelpText("after", EXAMPLES).action(dashboard);
}

async function dashboard(_options: object, command: Command): Promise<void> {
  const { client, output } = await contextOf(command);
  const link = await (await Operator.connect({ client })).signInLink();
  await (output === "json" ? printJson(link) : print(`${link.url}\n`));
}

const EXAMPLES = `
Examples:
  holdfast dashboard                             prints a link; open it within ten minutes, once
  xdg-open "$(holdfast dashboard)"

The link signs a browser in without the token. Whoever opens it first is in, so give it to nobody.`;
