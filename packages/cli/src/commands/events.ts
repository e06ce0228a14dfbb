import type { Command } from "commander";
import { type Client, HoldfastError, Sandbox, type SandboxEvent } from "holdfast";
import { addGlobalOptions, type Context, contextOf } from "../context.ts";
import { findSandbox } from "../find-sandbox.ts";
import { listenForSignals, unlessInterrupted } from "../interruption.ts";
import { print, printJson } from "../print.ts";
import { oneLine } from "../style.ts";
import { renderTable } from "../table.ts";
import { age, parseCount } from "../units.ts";

export function define(command: Command): void {
  addGlobalOptions(command)
    .argument("<sandbox>", "its name, its id, or the beginning of its id")
    .option("--since <seq>", "only what came after this number", parseCount)
    .option("-f, --follow", "go on with what happens from now on")
    .addHelpText("after", EXAMPLES)
    .action(events);
}

interface EventsOptions {
  since?: number;
  follow?: true;
}

async function events(meant: string, options: EventsOptions, command: Command): Promise<void> {
  const { client, output } = await contextOf(command);
  const { since } = options;
  if (options.follow) return follow(await findSandbox(client, meant), { since, output });
  const timeline = await timelineOf(meant, { since, client });
  if (output === "json") return printJson({ events: timeline });
  const head = ["SEQ", "AGE", "EVENT", "CAUSE", "DETAIL"];
  await print(renderTable({ head, rows: timeline.map(row), wraps: true }));
}

/** One line each, as they come: there is no end to wait for that would tell how wide the columns must be. */
async function follow(
  sandbox: Sandbox,
  { since, output }: { since: number | undefined; output: Context["output"] },
): Promise<void> {
  const interruption = listenForSignals();
  process.exitCode = await unlessInterrupted(interruption, async () => {
    for await (const event of sandbox.followEvents({ since, signal: interruption.signal }))
      await print(output === "json" ? `${JSON.stringify(event)}\n` : `${line(event)}\n`);
    return 0;
  });
}

function line(event: SandboxEvent): string {
  const [seq = "", , type = "", cause = "", detail = ""] = row(event);
  return oneLine(
    `${event.at}  ${seq.padStart(4)}  ${type.padEnd(12)}  ${cause.padEnd(14)}  ${detail}`,
  ).trimEnd();
}

/** A timeline outlives its sandbox: the evidence that it is gone is what one looks for afterwards. */
async function timelineOf(
  meant: string,
  options: { since: number | undefined; client: Client },
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
  holdfast events -f issue-42                 and what happens from now on
  holdfast events issue-42 --since 17 -o json

The timeline outlives the sandbox: after \`holdfast rm\` it ends with the evidence that nothing is left.`;
