import { McpServer } from "@modelcontextprotocol/server";
import type { Deps, Tool } from "./tool.ts";
import { create } from "./tools/create.ts";
import { remove } from "./tools/delete.ts";
import { exec } from "./tools/exec.ts";
import { fileEdit } from "./tools/file-edit.ts";
import { fileList } from "./tools/file-list.ts";
import { fileRead } from "./tools/file-read.ts";
import { fileWrite } from "./tools/file-write.ts";
import { list } from "./tools/list.ts";
import { port } from "./tools/port.ts";
import { processKill } from "./tools/process-kill.ts";
import { processLogs } from "./tools/process-logs.ts";
import { processStart } from "./tools/process-start.ts";
import { processWait } from "./tools/process-wait.ts";
import { processWrite } from "./tools/process-write.ts";
import { sessionExec } from "./tools/session-exec.ts";
import { snapshot } from "./tools/snapshot.ts";
import { why } from "./tools/why.ts";

/** In the order in which an agent meets them. */
const tools: readonly Tool[] = [
  ...[create, list, why, exec, sessionExec],
  ...[processStart, processWait, processLogs, processWrite, processKill],
  ...[fileRead, fileWrite, fileEdit, fileList, port, snapshot, remove],
];

/** All tools, for one conversation or for one request of it: nothing is remembered between calls. */
export function newServer(deps: Deps): McpServer {
  const server = new McpServer({ name: "holdfast", version: "0.1.0" }, { instructions: INSTRUCTIONS });
  for (const register of tools) register(server, deps);
  return server;
}

const INSTRUCTIONS = `Holdfast keeps isolated Linux sandboxes that are still there on the next turn, with their files and running processes.
- Begin with sandbox_create and a name; later calls, also of another conversation, use that name. sandbox_why shows where things stand.
- sandbox_exec runs one command; sandbox_session_exec keeps cd and exports; sandbox_process_start is for what should run on.
- Output is bounded. What is left out stays in a log that sandbox_process_logs reads from any offset.
- A \`notice\` in a result says that the sandbox was started anew and what of it is gone. Believe it over your memory.
- An error has a \`hint\` with the next step. After "not known whether it was begun", look before you repeat.
- Keep work under /workspace. sandbox_delete cannot be undone; an idle sandbox stops by itself and keeps its files.`;
