import { Command } from "commander";
import { addConnectionOptions, addOutputOption } from "./context.ts";
import { fitHelp } from "./help.ts";

/** What a command file exports: it adds its arguments, options, examples and action to an empty command. */
interface CommandModule {
  define(command: Command): void;
}

interface Entry {
  summary: string;
  /** Absent: the launcher has started it as a program of its own, long before us. */
  load?: () => Promise<CommandModule>;
  /** For programs, not for people. */
  isHidden?: true;
}

// Loaded one at a time: an `ls` does not wait for the code of `exec` to be read.
const commands: Record<string, Entry> = {
  serve: { summary: "start the server" },
  run: {
    summary: "run one command in a new sandbox, then delete it",
    load: () => import("./commands/run.ts"),
  },
  create: { summary: "make a sandbox", load: () => import("./commands/create.ts") },
  exec: { summary: "run a command in a sandbox", load: () => import("./commands/exec.ts") },
  sh: { summary: "open a terminal in a sandbox", load: () => import("./commands/sh.ts") },
  attach: { summary: "go back to a terminal that runs", load: () => import("./commands/attach.ts") },
  ls: { summary: "list sandboxes", load: () => import("./commands/ls.ts") },
  ps: { summary: "list the processes of a sandbox", load: () => import("./commands/ps.ts") },
  inspect: { summary: "show everything about a sandbox", load: () => import("./commands/inspect.ts") },
  logs: { summary: "print the output of a process or command", load: () => import("./commands/logs.ts") },
  kill: { summary: "end a process with everything it started", load: () => import("./commands/kill.ts") },
  port: { summary: "give a port of a sandbox an address", load: () => import("./commands/port.ts") },
  cp: { summary: "copy files into a sandbox, or out of it", load: () => import("./commands/cp.ts") },
  start: { summary: "start stopped sandboxes", load: () => import("./commands/start.ts") },
  pause: { summary: "freeze what runs in sandboxes", load: () => import("./commands/pause.ts") },
  resume: { summary: "let paused sandboxes run on", load: () => import("./commands/resume.ts") },
  stop: { summary: "stop sandboxes and keep their disks", load: () => import("./commands/stop.ts") },
  rm: { summary: "delete sandboxes with their disks", load: () => import("./commands/rm.ts") },
  snapshot: {
    summary: "copy a sandbox's files; list and remove such copies",
    load: () => import("./commands/snapshot.ts"),
  },
  fork: { summary: "make sandboxes with another's files", load: () => import("./commands/fork.ts") },
  export: { summary: "write a snapshot as one archive", load: () => import("./commands/export.ts") },
  import: { summary: "make a snapshot from an archive", load: () => import("./commands/import.ts") },
  events: { summary: "show what happened to a sandbox, and why", load: () => import("./commands/events.ts") },
  sync: {
    summary: "make a directory here and one in a sandbox the same",
    load: () => import("./commands/sync.ts"),
  },
  git: { summary: "clone a repository, show its state", load: () => import("./commands/git.ts") },
  watch: { summary: "show what happens to a sandbox's files", load: () => import("./commands/watch.ts") },
  why: { summary: "say why a sandbox lives, and when it will end", load: () => import("./commands/why.ts") },
  update: {
    summary: "change how long sandboxes live, and what ends them",
    load: () => import("./commands/update.ts"),
  },
  touch: { summary: "use sandboxes, so that they stay", load: () => import("./commands/touch.ts") },
  turn: { summary: "begin or end a turn, which holds a sandbox", load: () => import("./commands/turn.ts") },
  claim: { summary: "have a sandbox for oneself alone", load: () => import("./commands/claim.ts") },
  release: {
    summary: "end one's turn and claim, and leave all else",
    load: () => import("./commands/release.ts"),
  },
  providers: { summary: "show the backends and their room", load: () => import("./commands/providers.ts") },
  leases: {
    summary: "list every instance that exists or may exist",
    load: () => import("./commands/leases.ts"),
  },
  sweep: { summary: "look for what nobody wants, and end it", load: () => import("./commands/sweep.ts") },
  abandon: {
    summary: "forget an instance that cannot be proved gone",
    load: () => import("./commands/abandon.ts"),
  },
  mcp: { summary: "serve the tools for agents (MCP) on stdio", load: () => import("./commands/mcp.ts") },
  skill: {
    summary: "teach an agent on this machine to use Holdfast",
    load: () => import("./commands/skill.ts"),
  },
  token: { summary: "change the server's token", load: () => import("./commands/token.ts") },
  completion: {
    summary: "print what makes a shell complete our words",
    load: () => import("./commands/completion.ts"),
  },
  doctor: { summary: "check what this machine needs to hold sandboxes" },
  __complete: { summary: "for `completion`", isHidden: true, load: () => import("./commands/complete.ts") },
};

/** The whole command line, with the code of only the command that `args` ask for. */
export async function buildProgram(args: readonly string[]): Promise<Command> {
  const program = fitHelp(new Command("holdfast"));
  program
    .description("Sandboxes for AI agents that are still there tomorrow.")
    .exitOverride()
    .enablePositionalOptions()
    .configureOutput({ outputError: () => undefined }) // what is wrong is thrown, too, and told in our own form
    .version("0.1.0", "-V, --version", "print the version")
    .addHelpText("after", EXAMPLES);
  addOutputOption(addConnectionOptions(program));
  for (const [name, entry] of Object.entries(commands)) {
    program
      .command(name, { hidden: entry.isHidden ?? false })
      .summary(entry.summary)
      .description(capitalised(entry.summary));
  }
  // Two, because of `holdfast help exec`.
  const wanted = program.parseOptions([...args]).operands.slice(0, 2);
  for (const command of program.commands) {
    const load = commands[command.name()]?.load;
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

function startsAlone(name: string): string {
  return `error: \`${name}\` comes first: holdfast ${name} [options]`;
}

function capitalised(summary: string): string {
  return `${summary.charAt(0).toUpperCase()}${summary.slice(1)}.`;
}
