import { type Command, Option } from "commander";
import type { SignalName } from "holdfast";
import { addGlobalOptions, contextOf } from "../context.ts";
import { findProcess } from "../find-process.ts";
import { findSandbox } from "../find-sandbox.ts";
import { printJson } from "../print.ts";

const signals = [
  "SIGHUP",
  "SIGINT",
  "SIGQUIT",
  "SIGKILL",
  "SIGUSR1",
  "SIGUSR2",
  "SIGTERM",
  "SIGCONT",
  "SIGSTOP",
] as const satisfies readonly SignalName[];

export function define(command: Command): void {
  addGlobalOptions(command)
    .argument("<sandbox>", "its name, its id, or the beginning of its id")
    .argument("<processes...>", "ids of processes, or beginnings of ids")
    .addOption(new Option("-s, --signal <signal>", "only send the program this signal").choices(signals))
    .addHelpText("after", EXAMPLES)
    .action(kill);
}

async function kill(
  meant: string,
  ids: string[],
  options: { signal?: SignalName },
  command: Command,
): Promise<void> {
  const { client, output } = await contextOf(command);
  const sandbox = await findSandbox(client, meant);
  const targets = await Promise.all(ids.map((id) => findProcess(sandbox, id)));
  for (const target of targets)
    await (options.signal === undefined ? target.kill() : target.signal(options.signal));
  if (output === "json")
    await printJson({ processes: await Promise.all(targets.map((target) => target.info())) });
}

const EXAMPLES = `
Examples:
  holdfast kill issue-42 PROCESS             with everything it started; returns when nothing is left
  holdfast kill -s SIGHUP issue-42 PROCESS   one signal, to the program itself`;
