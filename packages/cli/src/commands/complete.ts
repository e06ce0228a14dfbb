import type { Command } from "commander";
import { candidates } from "../candidates.ts";
import { contextOf } from "../context.ts";
import { print } from "../print.ts";

// Whoever presses Tab does not wait longer, and hears of no failure.
const PATIENCE_MS = 600;

/** For the scripts of `holdfast completion`: what may stand in the place of the last word, one a line. */
export function define(command: Command): void {
  command.argument("[words...]").passThroughOptions().action(complete);
}

async function complete(words: string[], _options: object, command: Command): Promise<void> {
  const { client } = await contextOf(command);
  const found = await candidates(words, { client, signal: AbortSignal.timeout(PATIENCE_MS) });
  await print(
    found.map(({ word, what }) => (what === undefined ? `${word}\n` : `${word}\t${what}\n`)).join(""),
  );
}
