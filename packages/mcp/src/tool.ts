import type { CallToolResult, McpServer, ServerContext, ToolAnnotations } from "@modelcontextprotocol/server";
import type { Client } from "holdfast";
import type { z } from "zod";
import type { Connection } from "./connection.ts";
import { failureResult } from "./failure.ts";

/** What every tool call has: the server's API, the client's cancel, and a way to tell how far it is. */
export interface Call {
  readonly client: Client;
  readonly signal: AbortSignal;
  progress(message: string): void;
}

/** Where the calls of one conversation go. */
export interface Deps {
  readonly connection: Connection;
  /** Of what is under way when a call is cancelled or its client goes away, this says which of them ends it. */
  endsWork(signal: AbortSignal): AbortSignal;
}

/** A result twice: as data, and in words for whoever reads only those. */
export interface Told<T> {
  readonly facts: T;
  readonly text: string;
}

interface Definition<I extends z.ZodObject, O extends z.ZodObject> {
  readonly name: string;
  readonly title: string;
  readonly description: string;
  readonly input: I;
  readonly output: O;
  readonly hints: ToolAnnotations;
  run(input: z.output<I>, call: Call): Promise<Told<z.input<O>>>;
}

/** A tool, ready to be put on a server. */
export type Tool = (server: McpServer, deps: Deps) => void;

export function tool<I extends z.ZodObject, O extends z.ZodObject>(definition: Definition<I, O>): Tool {
  const { name, title, description, hints } = definition;
  // Without their particulars, which the library's types cannot follow.
  const schemas: { inputSchema: z.ZodObject; outputSchema: z.ZodObject } = {
    inputSchema: definition.input,
    outputSchema: definition.output,
  };
  const config = { title, description, ...schemas, annotations: hints };
  return (server, deps) => {
    server.registerTool(name, config, (checked, context) =>
      run(definition, checked as z.output<I>, { deps, context }),
    );
  };
}

async function run<I extends z.ZodObject, O extends z.ZodObject>(
  definition: Definition<I, O>,
  input: z.output<I>,
  { deps, context }: { deps: Deps; context: ServerContext },
): Promise<CallToolResult> {
  try {
    const client = await deps.connection.client();
    const signal = deps.endsWork(context.mcpReq.signal);
    const { facts, text } = await definition.run(input, { client, signal, progress: progressTo(context) });
    return { structuredContent: facts, content: [{ type: "text", text: withNotice(facts, text) }] };
  } catch (error) {
    deps.connection.failed(error);
    return failureResult(error);
  }
}

/** What the caller must not miss comes first. */
function withNotice(facts: { notice?: unknown }, text: string): string {
  return typeof facts.notice === "string" ? `notice: ${facts.notice}\n\n${text}` : text;
}

function progressTo({ mcpReq }: ServerContext): (message: string) => void {
  const progressToken = mcpReq._meta?.progressToken;
  let progress = 0;
  return (message) => {
    if (progressToken === undefined) return;
    const params = { progressToken, progress: ++progress, message };
    // Who no longer listens has no use for it.
    mcpReq.notify({ method: "notifications/progress", params }).catch(() => undefined);
  };
}
