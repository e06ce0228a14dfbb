import { sandboxStates } from "@holdfast/protocol";
import type { SandboxInfo } from "holdfast";
import { z } from "zod";
import { briefLine, briefOf, SandboxBrief } from "../sandbox-brief.ts";
import { tool } from "../tool.ts";

export const list = tool({
  name: "sandbox_list",
  title: "List sandboxes",
  description: "Which sandboxes there are, with their state and when they end. Wakes nothing.",
  input: z.strictObject({
    state: z.enum(sandboxStates).optional(),
    label: z.string().optional().describe("`key` or `key=value`"),
    limit: z.number().int().min(1).max(200).default(50),
    cursor: z.string().max(200).optional().describe("the nextCursor of the page before"),
  }),
  output: z.object({ sandboxes: z.array(SandboxBrief), nextCursor: z.string().optional() }),
  hints: { readOnlyHint: true, openWorldHint: false },
  async run(query, { client, signal }) {
    const call = { method: "GET", path: "/v1/sandboxes", query, again: "safe", signal } as const;
    const { body } = await client.json<{ sandboxes: SandboxInfo[]; nextCursor?: string }>(call);
    const sandboxes = body.sandboxes.map(briefOf);
    const { nextCursor } = body;
    const lines =
      sandboxes.length === 0 ? ["no sandboxes; sandbox_create makes one"] : sandboxes.map(briefLine);
    if (nextCursor !== undefined) lines.push(`--- there are more: cursor ${JSON.stringify(nextCursor)}`);
    return { facts: { sandboxes, ...(nextCursor !== undefined && { nextCursor }) }, text: lines.join("\n") };
  },
});
