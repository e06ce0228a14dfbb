import type { Command } from "holdfast";

export const COMMAND_HELP =
  "one argument is a line for the shell, several are a program and its arguments as they are";

/** One argument is a line for the shell; several are executed as they are, with no shell in between. */
export function toCommand(words: readonly string[]): Command {
  const [only, ...more] = words;
  return only !== undefined && more.length === 0 ? only : [...words];
}

/** A command on one line for people, quoted where that is needed to read it right. */
export function commandText(command: Command): string {
  if (typeof command === "string") return command;
  return command
    .map((word) => (/^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", `'\\''`)}'`))
    .join(" ");
}
