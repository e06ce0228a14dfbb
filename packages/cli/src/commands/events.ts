import type { Command } from "commander";
import { type Client, HoldfastError, Sandbox, type SandboxEvent } from "holdfast";
import { addGlobalOptions, contextOf } from "../context.ts";
import { findSandbox } from "../find-sandbox.ts";
import { print, printJson } from "../print.ts";
import { renderTable } from "../table.ts";
import { age, parseCount } from "../units.ts";

export function define(command: Command): void {
  addGlobalOptions(command)
    .argument("<sandbox>", "its name, its id, or the beginning of its id")
    .option("--since <seq>", "only what came after this number", parseCount)
    .addHelpText("after", EXAMPLES)
    .action(events);
}

async function events(meant: string, options: { since?: number }, command: Command): Promise<void> {
  const { client, output } = await contextOf(command);
  const timeline = await timelineOf(meant, { ...options, client });
  if (output === "json") return printJson({ events: timeline });
  await print(renderTable({ head: ["SEQ", "AGE", "EVENT", "CAUSE", "DETAIL"], rows: timeline.map(row) }));
}

/** A timeline outlives its sandbox: the evidence that it is gone is what one looks for afterwards. */
async function timelineOf(
  meant: string,
  options: { since?: number; client: Client },
): Promise<SandboxEvent[]> {
  try {
    return await (await findSandbox(options.client, meant)).events(options);
  } catch (error) {
    if (!(error instanceof HoldfastError) || error.code !== "gone") throw error;
    return Sandbox.events(meant, options);
  }
}

function row(event: SandboxEvent): string[] {
  const detail = Object.entries(event.detail)
    .map(([name, value]) => `${name}=${typeof value === "string" ? value : JSON.stringify(value)}`)
    .join(" ");
  return [String(event.seq), age(event.at), event.type, event.cause ?? "-", detail];
}

const EXAMPLES = `
Examples:
  holdfast events issue-42
  holdfast events issue-42 --since 17 -o json

The timeline outlives the sandbox: after \`holdfast rm\` it ends with the evidence that nothing is left.`;
