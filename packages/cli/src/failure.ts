import { CommanderError } from "commander";
import { HoldfastError } from "holdfast";
import { write } from "./print.ts";
import { oneLine, paint } from "./style.ts";

const FAILED = 1;
const USAGE = 2;
/** Of `run` and `exec`, whose other exit codes are those of the command inside; the same number as docker's. */
export const FAILED_TO_RUN = 125;

/** A command line that cannot be carried out as it stands. */
export class UsageError extends Error {}

/**
 * One line for what is wrong, one for what to do; a stack only for who asks with HOLDFAST_DEBUG=1. Whoever reads JSON
 * gets the API's own shape, with the `code` to act on.
 */
export async function printFailure(error: unknown, output: "table" | "json"): Promise<void> {
  if (error instanceof CommanderError) return; // has printed itself
  if (output === "json" && error instanceof HoldfastError)
    return write(process.stderr, `${JSON.stringify(error.toBody())}\n`);
  const message = error instanceof Error ? error.message : String(error);
  const lines = [`${paint("red", "error:", process.stderr)} ${oneLine(message)}`];
  if (error instanceof HoldfastError && error.hint !== undefined) {
    lines.push(`${paint("yellow", "hint:", process.stderr)} ${oneLine(error.hint)}`);
  }
  if (process.env.HOLDFAST_DEBUG === "1") lines.push(debugText(error));
  await write(process.stderr, `${lines.join("\n")}\n`);
}

export function exitStatusOf(error: unknown, failed: number = FAILED): number {
  if (error instanceof CommanderError) return error.exitCode === 0 ? 0 : USAGE;
  return error instanceof UsageError ? USAGE : failed;
}

function debugText(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  const facts = error instanceof HoldfastError ? `${JSON.stringify(error.toBody(), null, 2)}\n` : "";
  return `${facts}${Bun.inspect(error)}`;
}
