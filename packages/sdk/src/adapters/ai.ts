import { jsonSchema, type Tool, tool } from "ai";
import { type SandboxSource, type ToolboxOptions, toolbox } from "./toolbox.ts";

export type { SandboxSource, ToolboxOptions } from "./toolbox.ts";

/**
 * A sandbox as tools for the Vercel AI SDK (`ai`). Failures are results that the model can read, with a hint.
 *
 * @example
 * ```ts no-run
 * import { generateText, stepCountIs } from "ai";
 * import { Sandbox } from "holdfast";
 * import { sandboxTools } from "holdfast/ai";
 *
 * await using sandbox = await Sandbox.getOrCreate({ name: "issue-42" });
 * const { text } = await generateText({
 *   model,
 *   tools: sandboxTools(sandbox),
 *   stopWhen: stepCountIs(20),
 *   prompt: "Make the tests pass.",
 * });
 * ```
 */
export function sandboxTools(sandbox: SandboxSource, options: ToolboxOptions = {}): Record<string, Tool> {
  return Object.fromEntries(
    toolbox(sandbox, options).map(({ name, description, parameters, run }) => [
      name,
      tool({
        description,
        inputSchema: jsonSchema<unknown>(parameters),
        execute: (input, { toolCallId, abortSignal }) => run(input, { id: toolCallId, signal: abortSignal }),
      }),
    ]),
  );
}
