import type { Command } from "commander";
import type { Sandbox } from "holdfast";
import { type Context, contextOf } from "./context.ts";
import { printFailure } from "./failure.ts";
import { findSandbox } from "./find-sandbox.ts";
import { print, printJson } from "./print.ts";

/**
 * Does the same to several sandboxes, one after the other, and prints the names of those it was done to (with -q their ids). One that
 * fails does not keep the others from their turn; the exit code then tells of it.
 */
export async function forEachSandbox(
  command: Command,
  meant: readonly string[],
  act: (sandbox: Sandbox, context: Context) => Promise<{ id: string; name: string }>,
): Promise<void> {
  const context = await contextOf(command);
  const { client, output, quiet } = context;
  const done: { id: string; name: string }[] = [];
  for (const one of meant) {
    try {
      const result = await act(await findSandbox(client, one), context);
      done.push(result);
      if (output === "table") await print(`${quiet ? result.id : result.name}\n`);
    } catch (error) {
      if (meant.length === 1) throw error;
      await printFailure(error, output);
      process.exitCode = 1;
    }
  }
  if (output === "json") await printJson({ sandboxes: done });
}
