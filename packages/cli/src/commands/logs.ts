import { type Command, Option } from "commander";
import { HoldfastError, type LogEvent, type LogOptions, type Sandbox } from "holdfast";
import { addGlobalOptions, contextOf } from "../context.ts";
import { findProcess } from "../find-process.ts";
import { findSandbox } from "../find-sandbox.ts";
import { note } from "../live.ts";
import { isBrokenPipe, write } from "../print.ts";
import { parseCount } from "../units.ts";

interface LogsOptions {
  follow?: true;
  since?: number;
  stream?: "stdout" | "stderr";
}

export function define(command: Command): void {
  addGlobalOptions(command)
    .argument("<sandbox>", "its name, its id, or the beginning of its id")
    .argument("<process>", "the id of a process (or its beginning), or of a command")
    .option("-f, --follow", "go on with what is written later, until it ends")
    .option("--since <offset>", "begin at this byte of the log", parseCount)
    .addOption(new Option("--stream <stream>", "only one of the two").choices(["stdout", "stderr"]))
    .addHelpText("after", EXAMPLES)
    .action(logs);
}

async function logs(meant: string, id: string, options: LogsOptions, command: Command): Promise<void> {
  const { client, output } = await contextOf(command);
  const events = await logOf(await findSandbox(client, meant), id, options);
  const show = output === "json" ? showAsJson : showAsBytes;
  try {
    for await (const event of events) await show(event);
  } catch (error) {
    if (!isBrokenPipe(error)) throw error;
  }
}

async function logOf(sandbox: Sandbox, id: string, options: LogOptions): Promise<AsyncGenerator<LogEvent>> {
  try {
    return (await findProcess(sandbox, id)).logs(options);
  } catch (error) {
    if (!(error instanceof HoldfastError) || error.code !== "not_found") throw error;
    // Not a process at all? Then its own failure says most.
    await sandbox.getCommand(id).catch(() => Promise.reject(error));
    return sandbox.commandLogs(id, options);
  }
}

async function showAsBytes(event: LogEvent): Promise<void> {
  if (event.type === "stdout" || event.type === "stderr") await write(process[event.type], event.bytes);
  if (event.type === "truncated") await note(`${event.to - event.from} bytes are no longer in the log`);
  if (event.type === "lost") await note(`how it ended was not seen: ${event.reason}`);
}

/** One event a line, in the form of the API's event stream: bytes as base64 under `data`. */
async function showAsJson(event: LogEvent): Promise<void> {
  const { bytes, ...facts } = { bytes: undefined, ...event };
  const line = bytes === undefined ? facts : { ...facts, data: Buffer.from(bytes).toString("base64") };
  await write(process.stdout, `${JSON.stringify(line)}\n`);
}

const EXAMPLES = `
Examples:
  holdfast logs issue-42 PROCESS
  holdfast logs -f issue-42 PROCESS              until it ends
  holdfast logs --since 4096 --stream stderr issue-42 PROCESS
  holdfast logs -o json issue-42 PROCESS         one event a line, with offsets`;
