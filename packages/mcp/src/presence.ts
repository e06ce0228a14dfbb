import { type Client, Sandbox, type SandboxInfo } from "holdfast";
import { z } from "zod";
import type { Call, Told } from "./tool.ts";

/** How a tool's caller names a sandbox, and what it last knew of it. */
export const which = {
  sandbox: z.string().min(1).max(100).describe("the sandbox's name or id"),
  generation: z
    .number()
    .int()
    .min(1)
    .optional()
    .describe("the generation you last saw; if it is another now, `notice` says what that means"),
};

/** Which instance of the sandbox answered, and what its caller must know if that is not the one it knew. */
export const presence = {
  sandbox: z.string(),
  generation: z.number(),
  notice: z.string().optional(),
};

interface Presence {
  sandbox: string;
  generation: number;
  notice?: string;
}

interface Which {
  readonly sandbox: string;
  readonly generation?: number | undefined;
}

/** Does something with a sandbox, and says if it was started anew for it, or since its caller last looked. */
export async function withSandbox<T extends object>(
  { client, signal }: Call,
  { sandbox: name, generation }: Which,
  work: (sandbox: Sandbox) => Promise<Told<T>>,
): Promise<Told<T & Presence>> {
  const sandbox = await Sandbox.get(name, { client, signal });
  const known = generation ?? sandbox.generation;
  const { facts, text } = await work(sandbox);
  // What was done is worth more than this: a server that went away just now takes only the notice with it.
  const now = await compared({ client, id: sandbox.id, known }).catch(() => sandbox.info);
  const notice = noticeOf(now, known);
  const seen = { sandbox: now.name, generation: now.generation, ...(notice !== undefined && { notice }) };
  return { facts: { ...facts, ...seen }, text };
}

/** Its `continuity` and `losses` are in comparison with what the caller knew. */
async function compared(of: { client: Client; id: string; known: number }): Promise<SandboxInfo> {
  const headers = { "If-Generation": String(of.known) };
  const path = `/v1/sandboxes/${encodeURIComponent(of.id)}`;
  return (await of.client.json<SandboxInfo>({ method: "GET", path, headers, again: "safe" })).body;
}

function noticeOf(now: SandboxInfo, known: number): string | undefined {
  if (now.generation === known || known < 1) return undefined;
  const { generation, lastDeath } = now;
  const died = lastDeath === undefined ? "" : ` It had ended: ${lastDeath.cause} (${lastDeath.detail}).`;
  return `the sandbox was started anew: this is generation ${generation}, you knew ${known}. ${leftOf(now)}${died}`;
}

function leftOf({ continuity, losses = [] }: SandboxInfo): string {
  const gone = "Processes from before are gone: start again what you need.";
  switch (continuity) {
    case "same-process":
    case "same-filesystem":
      return `Same disk. ${gone} Sessions go on with their saved state.`;
    case "restored":
      return `A part of its disk is lost${losses.length > 0 ? ` (${losses.join(", ")})` : ""}. ${gone}`;
    case "fresh":
      return `Its disk is new: files from before are gone, too. ${gone}`;
  }
}
