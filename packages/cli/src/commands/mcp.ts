import { serveOnStdio } from "@holdfast/mcp/stdio";
import type { Command } from "commander";
import { addConnectionOptions, contextOf } from "../context.ts";
import { write } from "../print.ts";
import { oneLine } from "../style.ts";

/** As long as a server needs to restart. Then the agent is told, well before its client gives the call up. */
const PATIENCE_MS = 5_000;

export function define(command: Command): void {
  addConnectionOptions(command).addHelpText("after", EXAMPLES).action(mcp);
}

async function mcp(_options: object, command: Command): Promise<void> {
  await serveOnStdio({
    connect: () => contextOf(command, { patienceMs: PATIENCE_MS }).then(({ client }) => client),
    // stdout is the protocol's.
    onError: (error) => void write(process.stderr, `holdfast mcp: ${oneLine(error.message)}\n`),
  });
}

const EXAMPLES = `
Examples:
  holdfast mcp                      what your agent's program is told to start
  holdfast mcp --url http://10.0.0.5:4750 --token-file token

For Claude Code: \`claude mcp add holdfast -- holdfast mcp\`. It talks on stdin and stdout, needs no server until a tool is
called, and finds one that was started or restarted meanwhile. The server has the same tools at /mcp, over HTTP. See
docs/mcp.md.`;
