import type { Command } from "commander";
import type { ProcessInfo } from "holdfast";
import { commandText } from "../command-line.ts";
import { addGlobalOptions, addQuietOption, contextOf } from "../context.ts";
import { findSandbox } from "../find-sandbox.ts";
import { print, printJson } from "../print.ts";
import { type Cell, renderTable } from "../table.ts";
import { age } from "../units.ts";

export function define(command: Command): void {
  addQuietOption(addGlobalOptions(command), "only their ids")
    .argument("<sandbox>", "its name, its id, or the beginning of its id")
    .addHelpText("after", EXAMPLES)
    .action(ps);
}

async function ps(meant: string, _options: object, command: Command): Promise<void> {
  const { client, output, quiet } = await contextOf(command);
  const processes = await (await findSandbox(client, meant)).listProcesses();
  if (output === "json") return printJson({ processes });
  if (quiet) return print(processes.map(({ processId }) => `${processId}\n`).join(""));
  const head = ["PROCESS", "PID", "STATUS", "AGE", "COMMAND"];
  await print(renderTable({ head, rows: processes.map(row), spare: ["PID", "AGE"] }));
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
  holdfast kill issue-42 $(holdfast ps -q issue-42)

Commands of \`exec\` are not processes and are not listed.`;
