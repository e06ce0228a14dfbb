import type { Command } from "commander";
import { closest } from "./closest.ts";

/** Our options may stand on either side of the sandbox; what begins with `--` or a word is the command's alone. */
export function takeOptions(command: Command, rest: readonly string[]): string[] {
  const { operands, unknown } = command.parseOptions([...rest]);
  const [first] = unknown;
  if (first === undefined) return operands;
  const near = closest(
    first,
    command.options.flatMap(({ long, short }) => [long ?? "", short ?? ""]),
  );
  return command.error(
    `error: unknown option '${first}'${near === undefined ? "" : `\n(Did you mean ${near}?)`}`,
  );
}
