import { type Command, Option } from "commander";
import type { Sandbox, Session, StartProcessOptions, Command as Words } from "holdfast";
import { COMMAND_HELP, toCommand } from "../command-line.ts";
import { addGlobalOptions, type Context, contextOf } from "../context.ts";
import { FAILED_TO_RUN, UsageError } from "../failure.ts";
import { findSandbox } from "../find-sandbox.ts";
import { listenForSignals } from "../interruption.ts";
import { print, printJson } from "../print.ts";
import { runCommand } from "../run-command.ts";
import { addPair, ourValue } from "../spec-options.ts";
import { takeStdin } from "../stdin.ts";
import { takeOptions } from "../take-options.ts";
import { parseDurationMs } from "../units.ts";

interface ExecOptions {
  detach?: true;
  env?: Record<string, string>;
  timeout?: number;
  workdir?: string;
  session?: string;
  keepsAwake?: StartProcessOptions["keepsAwake"];
  stdin: boolean;
}

export function define(command: Command): void {
  addGlobalOptions(command)
    .argument("<sandbox>", "its name, its id, or the beginning of its id")
    .argument("<command...>", COMMAND_HELP)
    .option("-d, --detach", "start it as a process that runs on, and print its id")
    .option(
      "-e, --env <NAME=VALUE>",
      "an environment variable; NAME alone takes ours (again for more)",
      addPair(ourValue),
    )
    .option("--timeout <time>", "end it after this time, such as 30s or 5m", parseDurationMs)
    .option("-w, --workdir <dir>", "where to run it")
    .option("--session <id>", "run it in this persistent shell, which is made if there is none")
    .addOption(
      new Option("--keeps-awake <when>", "with -d: when it holds off the reaper (default: active)").choices([
        "always",
        "active",
        "never",
      ]),
    )
    .option("-n, --no-stdin", "give it an empty stdin, whatever is piped to us")
    .passThroughOptions()
    .addHelpText("after", EXAMPLES)
    .action(exec);
}

async function exec(meant: string, rest: string[], _options: object, command: Command): Promise<void> {
  process.exitCode = FAILED_TO_RUN;
  const words = takeOptions(command, rest);
  if (words.length === 0) command.error("error: missing required argument 'command'");
  const context = await contextOf(command);
  const sandbox = await findSandbox(context.client, meant);
  process.exitCode = await execIn(sandbox, { words, options: command.opts<ExecOptions>(), context });
}

async function execIn(
  sandbox: Sandbox,
  { words, options, context }: { words: string[]; options: ExecOptions; context: Context },
): Promise<number> {
  const { output } = context;
  const { workdir: cwd, env, timeout: timeoutMs, keepsAwake } = options;
  if (keepsAwake !== undefined && !options.detach)
    throw new UsageError(
      "--keeps-awake is for a process: a command that is waited for always holds",
      "Add -d, or leave it out.",
    );
  const command = toCommand(words);
  const session = await sessionOf(sandbox, options);
  if (options.detach) return detach(session ?? sandbox, { command, cwd, env, timeoutMs, keepsAwake, output });
  const stdin = takeStdin({ wanted: options.stdin });
  const interruption = listenForSignals();
  return runCommand({
    sandbox,
    session,
    command,
    options: { cwd, env, timeoutMs },
    output,
    stdin,
    interruption,
  });
}

async function sessionOf(sandbox: Sandbox, options: ExecOptions): Promise<Session | undefined> {
  if (options.session === undefined) return undefined;
  if (options.workdir !== undefined || (options.env !== undefined && !options.detach)) {
    throw new UsageError("--workdir and --env are the session's own", "Say `cd` and `export` in it.");
  }
  return sandbox.createSession({ sessionId: options.session });
}

type Detached = StartProcessOptions & { command: Words; output: Context["output"] };

async function detach(from: Sandbox | Session, { command, output, ...options }: Detached): Promise<number> {
  const started = await from.startProcess(command, options);
  await (output === "json" ? printJson(await started.info()) : print(`${started.processId}\n`));
  return 0;
}

const EXAMPLES = `
Examples:
  holdfast exec issue-42 -- npm test
  holdfast exec issue-42 "cd app && npm test | tail"
  tar c . | holdfast exec issue-42 -- tar x -C /workspace
  holdfast exec -d issue-42 -- npm run dev       a server; then: holdfast logs -f issue-42 PROCESS
  holdfast exec -d --keeps-awake always issue-42 -- ./worker   holds the sandbox while it runs, however quiet
  holdfast exec -o json issue-42 -- git status   the result as JSON
  holdfast exec --session s1 issue-42 "cd app && export CI=1"
  holdfast exec --session s1 issue-42 "npm test"  in app, with CI=1

Ctrl-C ends the command with everything it started. Piped stdin that is large or slow makes it a process, which
\`holdfast ps\` shows. The exit code is the command's own; 124 after --timeout, 125 if it could not be run.`;
