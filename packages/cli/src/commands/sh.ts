import type { Command } from "commander";
import { COMMAND_HELP, toCommand } from "../command-line.ts";
import { addConnectionOptions, contextOf } from "../context.ts";
import { FAILED_TO_RUN } from "../failure.ts";
import { findSandbox } from "../find-sandbox.ts";
import { addPair, ourValue } from "../spec-options.ts";
import { takeOptions } from "../take-options.ts";
import { interactAndLeave } from "../terminal/leave.ts";

interface ShOptions {
  id?: string;
  env?: Record<string, string>;
  workdir?: string;
}

export function define(command: Command): void {
  addConnectionOptions(command)
    .argument("<sandbox>", "its name, its id, or the beginning of its id")
    .argument("[command...]", `instead of the login shell; ${COMMAND_HELP}`)
    .option("--id <terminal>", "a name for the terminal; if one of that name runs, go to that")
    .option(
      "-e, --env <NAME=VALUE>",
      "an environment variable; NAME alone takes ours (again for more)",
      addPair(ourValue),
    )
    .option("-w, --workdir <dir>", "where to start")
    .passThroughOptions()
    .addHelpText("after", EXAMPLES)
    .action(sh);
}

async function sh(meant: string, rest: string[], _options: object, command: Command): Promise<void> {
  process.exitCode = FAILED_TO_RUN;
  const words = takeOptions(command, rest);
  const { client } = await contextOf(command);
  const sandbox = await findSandbox(client, meant);
  const { id, env, workdir } = command.opts<ShOptions>();
  const terminal = await sandbox.terminal({
    ...(id !== undefined && { id }),
    ...(words.length > 0 && { command: toCommand(words) }),
    ...(env !== undefined && { env }),
    ...(workdir !== undefined && { cwd: workdir }),
  });
  process.exitCode = await interactAndLeave(sandbox, terminal, { readonly: false });
}

const EXAMPLES = `
Examples:
  holdfast sh issue-42                     a login shell
  holdfast sh issue-42 --id main           the same shell again tomorrow
  holdfast sh issue-42 -- vim notes.md
  echo 'make test' | holdfast sh issue-42

Ctrl-P Ctrl-Q detaches: the program goes on, and \`holdfast attach\` brings you back. A restart of the server does not
end it. The exit code is the program's own; 125 if it could not be started.`;
