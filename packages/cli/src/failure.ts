import { CommanderError } from "commander";
import { HoldfastError } from "holdfast";
import { write } from "./print.ts";
import { oneLine, paint } from "./style.ts";

const FAILED = 1;
const USAGE = 2;
/** Of `run` and `exec`, whose other exit codes are those of the command inside; the same number as docker's. */
export const FAILED_TO_RUN = 125;

/** A command line that cannot be carried out as it stands, with what to write instead. */
export class UsageError extends HoldfastError {
  constructor(message: string, hint: string) {
    super("invalid_argument", message, { hint, started: "no" });
  }
}

/**
 * One line for what is wrong, one for what to do; a stack only for who asks with HOLDFAST_DEBUG=1. Whoever reads JSON
 * gets the API's own shape, with the `code` to act on.
 */
export async function printFailure(error: unknown, output: "table" | "json"): Promise<void> {
  if (error instanceof CommanderError && isNoFailure(error)) return;
  const failure = toHoldfastError(error);
  if (output === "json") return write(process.stderr, `${JSON.stringify(failure.toBody())}\n`);
  const lines = [`${paint("red", "error:", process.stderr)} ${oneLine(failure.message)}`];
  if (failure.hint !== undefined)
    lines.push(`${paint("yellow", "hint:", process.stderr)} ${oneLine(failure.hint)}`);
  if (process.env.HOLDFAST_DEBUG === "1") lines.push(debugText(error));
  await write(process.stderr, `${lines.join("\n")}\n`);
}

/** `failed` is what a command has said that its own failure is. */
export function exitStatusOf(error: unknown, failed: number = FAILED): number {
  if (error instanceof CommanderError) return error.exitCode === 0 ? 0 : USAGE;
  const isUsage = error instanceof UsageError || (failed === FAILED && isInvalid(error));
  return isUsage ? USAGE : failed;
}

/** Also what only the server can know to be wrong, such as a name that is none. */
function isInvalid(error: unknown): boolean {
  return error instanceof HoldfastError && error.code === "invalid_argument";
}

/** Help and version are thrown, too; both have printed themselves. */
function isNoFailure({ code }: CommanderError): boolean {
  return ["commander.help", "commander.helpDisplayed", "commander.version"].includes(code);
}

function toHoldfastError(error: unknown): HoldfastError {
  if (error instanceof HoldfastError) return inOurTerms(error);
  if (error instanceof CommanderError) return wronglyCalled(error);
  const message = error instanceof Error ? error.message : String(error);
  return new HoldfastError("internal", message, { cause: error });
}

const SEE_HELP = "Add --help to see how it is used.";

/** The parser's own words, `error: …`, with advice behind or `(Did you mean …?)` below, in our form. */
function wronglyCalled({ message }: CommanderError): UsageError {
  const [line = "", meant] = message.replace(/^error: /, "").split("\n");
  const [, what = line, advice] = /^(.* is invalid)\. (.+)$/.exec(line) ?? [];
  return new UsageError(what, meant?.replace(/^\((.*)\)$/, "$1") ?? advice ?? SEE_HELP);
}

/** Where a program is sent to the description of the API, a person is better off with our help. */
function inOurTerms(error: HoldfastError): HoldfastError {
  if (error.code !== "invalid_argument" || !error.hint?.includes("/openapi.json")) return error;
  const { code, message, details, started } = error;
  return new HoldfastError(code, message, { hint: SEE_HELP, details, started, cause: error });
}

function debugText(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  const facts = error instanceof HoldfastError ? `${JSON.stringify(error.toBody(), null, 2)}\n` : "";
  return `${facts}${Bun.inspect(error)}`;
}
