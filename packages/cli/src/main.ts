import type { Command } from "commander";
import { outputOf } from "./context.ts";
import { exitStatusOf, printFailure } from "./failure.ts";
import { buildProgram } from "./program.ts";

// A reader that has seen enough (`| head`) is no error of ours.
process.stdout.on("error", leaveQuietlyOnBrokenPipe);
process.stderr.on("error", leaveQuietlyOnBrokenPipe);

const A_DAY_MS = 86_400_000;

void main(process.argv.slice(2));

async function main(args: readonly string[]): Promise<never> {
  // We do not end before we are through: whoever waits for a signal alone has nothing that keeps the runtime going.
  setInterval(() => undefined, A_DAY_MS);
  let program: Command | undefined;
  try {
    program = await buildProgram(args);
    await program.parseAsync(args, { from: "user" });
  } catch (error) {
    await printFailure(error, outputOf(program));
    // A command that passes exit codes through has said before what its own failure is.
    const said = process.exitCode === undefined ? undefined : Number(process.exitCode);
    process.exitCode = exitStatusOf(error, said);
  }
  // Not by running out of work: a stdin that nobody closes would keep us for ever.
  process.exit();
}

function leaveQuietlyOnBrokenPipe(error: NodeJS.ErrnoException): void {
  if (error.code !== "EPIPE") throw error;
}
