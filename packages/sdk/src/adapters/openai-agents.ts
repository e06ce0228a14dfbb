import { type Tool, tool } from "@openai/agents";
import { type SandboxSource, type ToolboxOptions, toolbox } from "./toolbox.ts";

export type { SandboxSource, ToolboxOptions } from "./toolbox.ts";

/**
 * A sandbox as tools for the OpenAI Agents SDK (`@openai/agents`). Failures are results that the model can read, with a
 * hint.
 *
 * @example
 * ```ts no-run
 * import { Agent, run } from "@openai/agents";
 * import { Sandbox } from "holdfast";
 * import { sandboxTools } from "holdfast/openai-agents";
 *
 * await using sandbox = await Sandbox.getOrCreate({ name: "issue-42" });
 * const agent = new Agent({ name: "coder", tools: sandboxTools(sandbox) });
 * const { finalOutput } = await run(agent, "Make the tests pass.");
 * ```
 */
export function sandboxTools(sandbox: SandboxSource, options: ToolboxOptions = {}): Tool[] {
  return toolbox(sandbox, options).map(({ name, description, parameters, run }) =>
    tool({
      name,
      description,
      // Not strict: what may be left out would have to be made up by the model.
      parameters: { ...parameters, additionalProperties: true },
      strict: false,
      execute: (input, _context, details) =>
        run(input, { id: details?.toolCall?.callId, signal: details?.signal }),
    }),
  );
}
