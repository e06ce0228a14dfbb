import type { Command } from "commander";
import { HoldfastError, type Sandbox, type TerminalInfo } from "holdfast";
import { commandText } from "../command-line.ts";
import { addConnectionOptions, contextOf } from "../context.ts";
import { FAILED_TO_RUN } from "../failure.ts";
import { byPrefix, findSandbox } from "../find-sandbox.ts";
import { interactAndLeave } from "../terminal/leave.ts";

export function define(command: Command): void {
  addConnectionOptions(command)
    .argument("<sandbox>", "its name, its id, or the beginning of its id")
    .argument("[terminal]", "its id, or the beginning of it; may be left out if only one runs")
    .option("--readonly", "watch only: no key reaches the program, and Ctrl-C leaves")
    .addHelpText("after", EXAMPLES)
    .action(attach);
}

async function attach(
  meant: string,
  terminalId: string | undefined,
  options: { readonly?: true },
  command: Command,
): Promise<void> {
  process.exitCode = FAILED_TO_RUN;
  const { client } = await contextOf(command);
  const sandbox = await findSandbox(client, meant);
  const readonly = options.readonly ?? false;
  const terminal = await sandbox.attachTerminal(await idOf(sandbox, terminalId), { readonly });
  process.exitCode = await interactAndLeave(sandbox, terminal, { readonly });
}

async function idOf(sandbox: Sandbox, meant: string | undefined): Promise<string> {
  if (meant === undefined) return theOnlyOne(sandbox);
  const ids = (await sandbox.listTerminals()).map(({ terminalId }) => terminalId);
  if (ids.includes(meant)) return meant;
  return byPrefix(ids, meant, { what: "terminal", list: `holdfast attach ${sandbox.name}` });
}

async function theOnlyOne(sandbox: Sandbox): Promise<string> {
  const running = (await sandbox.listTerminals()).filter(({ state }) => state === "running");
  const [only] = running;
  if (only !== undefined && running.length === 1) return only.terminalId;
  throw only === undefined ? none(sandbox) : several(running);
}

function none(sandbox: Sandbox): HoldfastError {
  return new HoldfastError("not_found", `no terminal runs in ${sandbox.name}`, {
    hint: `\`holdfast sh ${sandbox.name}\` opens one.`,
  });
}

function several(running: readonly TerminalInfo[]): HoldfastError {
  const list = running.map(({ terminalId, command }) => `${terminalId} (${commandText(command)})`);
  return new HoldfastError("invalid_argument", `${running.length} terminals run: say which`, {
    hint: `They are ${list.join(", ")}.`,
  });
}

const EXAMPLES = `
Examples:
  holdfast attach issue-42                 the terminal that runs there
  holdfast attach issue-42 main            one of several
  holdfast attach --readonly issue-42 main  look over somebody's shoulder

Ctrl-P Ctrl-Q detaches; the program goes on.`;
