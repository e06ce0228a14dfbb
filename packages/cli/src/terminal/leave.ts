import type { Sandbox, Terminal } from "holdfast";
import { note } from "../live.ts";
import { write } from "../print.ts";
import { interact, type Outcome } from "./interact.ts";

/** Interacts, says what the user should know at the end, and gives the exit code that is ours to leave with. */
export async function interactAndLeave(
  sandbox: Sandbox,
  terminal: Terminal,
  options: { readonly: boolean },
): Promise<number> {
  const outcome = await interact(terminal, options);
  if (outcome.kind === "exited") return exitCodeOf(outcome);
  // The cursor is where the program left it, mostly behind a prompt.
  if (process.stderr.isTTY) await write(process.stderr, "\n");
  await note(howToComeBack(sandbox, terminal));
  return exitCodeOf(outcome);
}

async function exitCodeOf(outcome: Outcome): Promise<number> {
  if (outcome.kind === "detached") return 0;
  if (outcome.kind === "exited" && outcome.cause !== "program")
    await note(causes[outcome.cause] ?? "it was ended");
  return outcome.exitCode;
}

const causes: Record<string, string> = {
  destroyed: "the terminal was destroyed by somebody else",
  grace_over: "the terminal was ended: nobody had been attached for its grace time",
  keeper_stopped: "the terminal was ended with its sandbox",
};

function howToComeBack(sandbox: Sandbox, terminal: Terminal): string {
  return `detached; the program goes on. Back to it: holdfast attach ${sandbox.name} ${terminal.terminalId}`;
}
