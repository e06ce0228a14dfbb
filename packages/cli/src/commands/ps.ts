import type { Command } from "commander";
import type { ProcessInfo } from "holdfast";
import { commandText } from "../command-line.ts";
import { addGlobalOptions, contextOf } from "../context.ts";
import { findSandbox } from "../find-sandbox.ts";
import { print, printJson } from "../print.ts";
import { type Cell, renderTable } from "../table.ts";
import { age } from "../units.ts";

export function define(command: Command): void {
  addGlobalOptions(command)
    .argument("<sandbox>", "its name, its id, or the beginning of its id")
    .addHelpText("after", EXAMPLES)
    .action(ps);
}

async function ps(meant: string, _options: object, command: Command): Promise<void> {
  const { client, output } = await contextOf(command);
  const processes = await (await findSandbox(client, meant)).listProcesses();
  if (output === "json") return printJson({ processes });
  await print(
    renderTable({ head: ["PROCESS", "PID", "STATUS", "AGE", "COMMAND"], rows: processes.map(row) }),
  );
}

function row(info: ProcessInfo): (string | Cell)[] {
  return [
    info.processId,
    String(info.pid),
    statusCell(info.status),
    age(info.startedAt),
    commandText(info.command),
  ];
}

function statusCell(status: ProcessInfo["status"]): Cell {
  switch (status.state) {
    case "running":
      return { text: "running", colour: "green" };
    case "lost":
      return { text: `lost: ${status.reason}`, colour: "red" };
    case "exited": {
      const how = status.timedOut ? "timeout" : status.oomKilled ? "out of memory" : status.signal;
      const colour = status.exitCode === 0 ? "grey" : "red";
      return { text: `exited ${status.exitCode}${how === null ? "" : ` (${how})`}`, colour };
    }
    default:
      return status satisfies never;
  }
}

const EXAMPLES = `
Examples:
  holdfast ps issue-42
  holdfast ps issue-42 -o json

Commands of \`exec\` are not processes and are not listed.`;
