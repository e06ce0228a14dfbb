import { type Carried, carriedBySubprotocols, HoldfastError } from "@holdfast/protocol";
import type { Context } from "hono";
import { z } from "zod";
import type { AppEnv } from "../app.ts";
import type { Asked } from "../lifecycle/refusals.ts";

/** What a call says beside its own matter: what it remembers, and under which turn and claim it comes. */
export function askedBy(c: Context<AppEnv>): Asked {
  const turnId = carried(c, "turn");
  const claimToken = carried(c, "claim");
  return {
    ...rememberedBy(c),
    ...(turnId !== undefined && { turnId }),
    ...(claimToken !== undefined && { claimToken }),
  };
}

/** `If-Generation`, and `If-Continuity` for what the caller would accept instead. */
export function rememberedBy(c: Context<AppEnv>): Pick<Asked, "generation" | "accept"> {
  const generation = c.req.header("if-generation");
  if (generation === undefined) return {};
  if (!/^\d{1,15}$/.test(generation)) {
    throw new HoldfastError("invalid_argument", "If-Generation must be a whole number", {
      hint: "send the number that an answer's Holdfast-Generation had",
      started: "no",
    });
  }
  const accept = c.req.header("if-continuity");
  if (accept === undefined) return { generation: Number(generation) };
  if (accept !== "same-filesystem" && accept !== "restored") {
    throw new HoldfastError("invalid_argument", "If-Continuity can only be same-filesystem or restored", {
      hint: "leave it out to be refused any other instance",
      started: "no",
    });
  }
  return { generation: Number(generation), accept };
}

/** A page cannot set a header on a WebSocket: there it is among the subprotocols. */
function carried(c: Context<AppEnv>, name: keyof Carried): string | undefined {
  const offered = c.req.header("sec-websocket-protocol") ?? null;
  return c.req.header(`holdfast-${name}`) ?? carriedBySubprotocols(offered, name);
}

/** On calls that change something. */
export const holdHeaders = z.object({
  "holdfast-turn": z.string().optional().describe("the open turn that this call is a part of; renews it"),
  "holdfast-claim": z.string().optional().describe("the token of the claim that the caller holds"),
});

/** On calls that may meet another instance than the caller remembers. */
export const workHeaders = holdHeaders.extend({
  "if-generation": z
    .string()
    .optional()
    .describe("refuse with state_lost if the sandbox is no longer this generation"),
  "if-continuity": z
    .string()
    .optional()
    .describe("same-filesystem: accept a new instance on the old disk; restored: also on what is left of it"),
});

/** On calls that start something under an id. */
export const startHeaders = workHeaders.extend({
  "idempotency-key": z.string().optional().describe("the command's or process's id, if the body names none"),
});
