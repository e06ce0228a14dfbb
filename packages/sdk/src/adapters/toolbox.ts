import { HoldfastError } from "@holdfast/protocol/errors";
import type { Sandbox } from "../sandbox.ts";

/** What an agent's tools work on, and how much of it they tell. */
export interface ToolboxOptions {
  /** Bound of each text that a tool gives to the model. What is missing is counted. Default: 30,000 bytes. */
  maxOutputBytes?: number | undefined;
  /** A command that takes longer is ended, unless the model asks for another time. Default: 120,000. */
  timeoutMs?: number | undefined;
  /**
   * Name commands after the model's tool calls: a step that is run again after a crash attaches to the command of its
   * first run, and never runs it twice. Only for models whose call ids are unique; some begin anew with each answer.
   */
  attachByCallId?: boolean | undefined;
}

/** A sandbox, or the way to one, which is gone once, by the first tool that is called. */
export type SandboxSource = Sandbox | (() => Promise<Sandbox>);

/** A tool as every library for agents wants it, before it has that library's form. */
export interface ToolDefinition {
  readonly name: string;
  readonly description: string;
  readonly parameters: ObjectSchema;
  /** A failure is an answer, with what to do about it: the model is to read it. Only an abort is thrown. */
  run(input: unknown, call: ToolCall): Promise<unknown>;
}

/** As JSON Schema has it. */
interface ObjectSchema {
  type: "object";
  properties: Record<string, { type: "string" | "integer"; description: string }>;
  required: string[];
  additionalProperties: false;
}

interface ToolCall {
  readonly id: string | undefined;
  readonly signal: AbortSignal | undefined;
}

interface Work {
  sandbox: Sandbox;
  signal: AbortSignal | undefined;
  /** For what must not run twice. */
  commandId: string | undefined;
  maxBytes: number;
  timeoutMs: number;
}

interface Recipe {
  description: string;
  needs: Record<string, string>;
  may?: Record<string, string>;
  // biome-ignore lint/suspicious/noExplicitAny: what a model sends is checked by the server
  run(input: any, work: Work): Promise<unknown>;
}

/** The tools that most agents need, under the names that they have over MCP. */
export function toolbox(source: SandboxSource, options: ToolboxOptions = {}): ToolDefinition[] {
  let found: Promise<Sandbox> | undefined;
  const find = (): Promise<Sandbox> => {
    found ??= Promise.resolve(typeof source === "function" ? source() : source);
    // One that could not be had is looked for again by the next call.
    found.catch(() => {
      found = undefined;
    });
    return found;
  };
  return Object.entries(recipes).map(([name, recipe]) => ({
    name,
    description: recipe.description,
    parameters: schemaOf(recipe),
    run: (input, { id, signal }) =>
      tellingFailures(signal, async () =>
        recipe.run(input, {
          sandbox: await find(),
          signal,
          commandId: options.attachByCallId === true ? id : undefined,
          maxBytes: options.maxOutputBytes ?? 30_000,
          timeoutMs: options.timeoutMs ?? 120_000,
        }),
      ),
  }));
}

const recipes: Record<string, Recipe> = {
  sandbox_exec: {
    description:
      "Run a shell command in the sandbox and wait for its end. Each runs in a new shell: only files stay. A non-zero exit code is a result.",
    needs: { command: "the command, for a shell" },
    may: { cwd: "absolute; default: the workspace", timeoutMs: "integer: ends it after so long" },
    async run({ command, cwd, timeoutMs }, work) {
      const { signal, commandId } = work;
      const limits = { timeoutMs: timeoutMs ?? work.timeoutMs, maxOutputBytes: work.maxBytes };
      const result = await work.sandbox.exec(command, { cwd, signal, commandId, ...limits });
      const { exitCode, stdout, stderr, timedOut, truncated } = result;
      return { exitCode, stdout, stderr, timedOut, truncated };
    },
  },
  sandbox_process_start: {
    description:
      "Start a program that runs on by itself, such as a server. It is still there on the next turn. Read its output with sandbox_process_logs.",
    needs: { command: "the command, for a shell" },
    may: { cwd: "absolute; default: the workspace" },
    async run({ command, cwd }, { sandbox, signal, commandId: processId }) {
      const { processId: id, pid } = await sandbox.startProcess(command, { cwd, signal, processId });
      return { processId: id, pid };
    },
  },
  sandbox_process_logs: {
    description: "Read what a process has written so far, from an offset, and whether it still runs.",
    needs: { processId: "from sandbox_process_start" },
    may: { since: "integer: the nextOffset of the last reading; default: 0" },
    async run({ processId, since }, { sandbox, signal, maxBytes }) {
      const process = await sandbox.getProcess(processId, { signal });
      const { status } = await process.info({ signal });
      const decoder = new TextDecoder();
      let [text, nextOffset] = ["", since ?? 0];
      for await (const event of process.logs({ since, signal })) {
        if (event.type === "truncated") nextOffset = event.to;
        if (!("bytes" in event)) continue;
        const piece = event.bytes.subarray(0, maxBytes - text.length);
        text += decoder.decode(piece, { stream: true });
        nextOffset = event.offset + piece.length;
        if (text.length >= maxBytes) break;
      }
      return { text, nextOffset, status };
    },
  },
  sandbox_file_read: {
    description: "Read a text file, or a part of it.",
    needs: { path: "absolute" },
    may: { start: "integer: the first byte; default: 0" },
    async run({ path, start = 0 }, { sandbox, signal, maxBytes }) {
      const { sizeBytes } = await sandbox.files.stat(path, { signal, follow: true });
      const end = Math.min(start + maxBytes, sizeBytes);
      const text = end <= start ? "" : await sandbox.files.readText(path, { start, end, signal });
      return { text, sizeBytes, ...(end < sizeBytes && { nextStart: end }) };
    },
  },
  sandbox_file_write: {
    description: "Write a text file, whole or not at all; directories that are missing are made.",
    needs: { path: "absolute", content: "the whole new content" },
    async run({ path, content }, { sandbox, signal }) {
      const { sizeBytes } = await sandbox.files.write(path, content, { parents: true, signal });
      return { path, sizeBytes };
    },
  },
  sandbox_file_list: {
    description: "List what is in a directory.",
    needs: { path: "absolute" },
    may: { depth: "integer: how many levels; default: 1" },
    async run({ path, depth }, { sandbox, signal, maxBytes }) {
      const files: object[] = [];
      let left = maxBytes;
      for await (const { path: at, type, sizeBytes } of sandbox.files.list(path, { depth, signal })) {
        left -= at.length + 40;
        if (left < 0) return { files, truncated: true };
        files.push({ path: at, type, sizeBytes });
      }
      return { files, truncated: false };
    },
  },
  sandbox_port: {
    description: "Get an address for what listens on a port inside the sandbox, for people to open.",
    needs: { port: "integer: the port inside" },
    run: async ({ port }, { sandbox, signal }) => ({
      url: (await sandbox.ports.expose(port, { signal })).url,
    }),
  },
};

/** `integer: …` is a number; everything else is text. */
function schemaOf({ needs, may = {} }: Recipe): ObjectSchema {
  const property = ([name, text]: [string, string]) => {
    const [, integer, words = ""] = /^(integer: )?(.*)$/.exec(text) ?? [];
    return [name, { type: integer === undefined ? "string" : "integer", description: words }];
  };
  return {
    type: "object",
    properties: Object.fromEntries(Object.entries({ ...needs, ...may }).map(property)),
    required: Object.keys(needs),
    additionalProperties: false,
  };
}

async function tellingFailures(
  signal: AbortSignal | undefined,
  work: () => Promise<unknown>,
): Promise<unknown> {
  try {
    return await work();
  } catch (error) {
    if (signal?.aborted || !(error instanceof HoldfastError)) throw error;
    const { code, message, hint, retryable } = error;
    return { error: { code, message, hint, retryable } };
  }
}
