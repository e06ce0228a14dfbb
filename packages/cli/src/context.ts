import { readFile } from "node:fs/promises";
import { type Command, Option } from "commander";
import { Client, type ConnectOptions, HoldfastError } from "holdfast";
import { COMMON_OPTIONS } from "./help.ts";

/** What every command gets from its global options. */
export interface Context {
  readonly client: Client;
  readonly output: "table" | "json";
  /** Ids and nothing else, and no progress. */
  readonly quiet: boolean;
}

interface GlobalOptions {
  url?: string;
  tokenFile?: string;
  output?: "table" | "json";
  quiet?: true;
}

/** What `holdfast turn` and `holdfast claim` print: whoever exports it makes all its commands a part of it. */
const held = { turn: process.env.HOLDFAST_TURN || undefined, claim: process.env.HOLDFAST_CLAIM || undefined };

/** Which server. The token comes from a file or the environment: a command line is for everybody to see. */
export function addConnectionOptions(command: Command): Command {
  const token = "a file with the server's token (default: HOLDFAST_TOKEN, else the local server's)";
  return command
    .addOption(common("--url <url>", "the server (default: HOLDFAST_URL, else http://127.0.0.1:4750)"))
    .addOption(common("--token-file <file>", token));
}

export function addOutputOption(command: Command): Command {
  return command.addOption(common("-o, --output <format>", "how to print").choices(["table", "json"]));
}

function common(flags: string, description: string): Option {
  return new Option(flags, description).helpGroup(COMMON_OPTIONS);
}

/** For commands that have more to say than ids. */
export function addQuietOption(command: Command, what = "only ids, and no progress"): Command {
  return command.addOption(common("-q, --quiet", what));
}

/** Options may stand before or after the command's name. */
export function addGlobalOptions(command: Command): Command {
  return addConnectionOptions(addOutputOption(command));
}

export async function contextOf(
  command: Command,
  connecting: Pick<ConnectOptions, "patienceMs"> = {},
): Promise<Context> {
  const { url, tokenFile, output = "table", quiet = false } = globalOptionsOf(command);
  const token = tokenFile === undefined ? undefined : await tokenIn(tokenFile);
  const client = await Client.connect({ url, token, ...connecting });
  return { client: client.carrying(() => held), output, quiet };
}

/** What the command that was run prints; of a program that could not be built, nothing is known. */
export function outputOf(program: Command | undefined): Context["output"] {
  const command = program?.commands.find((one) => one.name() === program.args[0]) ?? program;
  return (command && globalOptionsOf(command).output) ?? "table";
}

// Not `optsWithGlobals`, in which what stands before the command's name would win over what stands after it.
function globalOptionsOf(command: Command): GlobalOptions {
  return { ...command.parent?.opts<GlobalOptions>(), ...command.opts<GlobalOptions>() };
}

async function tokenIn(file: string): Promise<string> {
  const text = await readFile(file, "utf8").catch((cause: Error) => {
    throw new HoldfastError("invalid_argument", `cannot read the token file: ${cause.message}`, { cause });
  });
  if (text.trim() !== "") return text.trim();
  throw new HoldfastError("invalid_argument", `the token file ${file} is empty`);
}
