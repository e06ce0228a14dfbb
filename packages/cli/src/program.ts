import { Command } from "commander";
import { addConnectionOptions, addOutputOption } from "./context.ts";
import { fitHelp } from "./help.ts";
import { verbs } from "./verbs.ts";

/** The whole command line, with the code of only the command that `args` ask for. */
export async function buildProgram(args: readonly string[]): Promise<Command> {
  const program = fitHelp(new Command("holdfast"));
  program
    .description("Sandboxes for AI agents that are still there tomorrow.")
    .exitOverride()
    .enablePositionalOptions()
    .configureOutput({ outputError: () => undefined }) // what is wrong is thrown, too, and told in our own form
    .addHelpCommand(helpCommand())
    .version("0.1.0", "-V, --version", "print the version")
    .addHelpText("after", EXAMPLES);
  addOutputOption(addConnectionOptions(program));
  for (const [group, members] of Object.entries(verbs)) {
    for (const [name, { summary, isHidden = false }] of Object.entries(members)) {
      const command = program.command(name, { hidden: isHidden }).helpGroup(`${group}:`);
      command.summary(summary).description(capitalised(summary));
    }
  }
  // Two, because of `holdfast help exec`.
  const loaders = Object.assign({}, ...Object.values(verbs)) as (typeof verbs)[string];
  const wanted = program.parseOptions([...args]).operands.slice(0, 2);
  for (const command of program.commands) {
    const load = loaders[command.name()]?.load;
    if (load === undefined) command.action(() => command.error(startsAlone(command.name())));
    else if (wanted.includes(command.name())) (await load()).define(command);
  }
  return program;
}

const EXAMPLES = `
Examples:
  holdfast serve                             start a server on this machine
  holdfast run -- uname -a                   one command in a fresh sandbox
  holdfast create --name issue-42            a sandbox to come back to
  holdfast exec issue-42 -- "cd app && make"  run something in it
  holdfast ls                                which sandboxes there are
  holdfast why issue-42                      what holds it, and when it ends

The server is found through HOLDFAST_URL and HOLDFAST_TOKEN, else on this machine.`;

function helpCommand(): Command {
  return new Command("help").argument("[command]").summary("show how a command is used").helpGroup("Help:");
}

function startsAlone(name: string): string {
  return `error: \`${name}\` comes first: holdfast ${name} [options]`;
}

function capitalised(summary: string): string {
  return `${summary.charAt(0).toUpperCase()}${summary.slice(1)}.`;
}
