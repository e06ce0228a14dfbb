import { continuityOf, type Holding, stateOf } from "@holdfast/core";
import { type Continuity, HoldfastError, type Sandbox } from "@holdfast/protocol";
import type { Context } from "hono";
import { z } from "zod";
import type { AppEnv } from "../app.ts";
import type { Remembered } from "../refusals.ts";

/** The rows as users see them. */
export function describe(holding: Holding, remembered?: number): Sandbox {
  const { sandbox, lease } = holding;
  const { id, name, provider, spec, labels, generation, lastDeath, failure } = sandbox;
  return {
    id,
    name,
    state: stateOf(holding),
    generation,
    continuity: continuityOf(generation, remembered),
    provider,
    spec,
    labels,
    limits: lease?.limits ?? { state: "none" },
    createdAt: iso(sandbox.createdAt),
    ...(lease !== undefined && lease.admittedAt !== null && { startedAt: iso(lease.admittedAt) }),
    ...(lastDeath !== null && { lastDeath }),
    ...(failure !== null && { failure }),
  };
}

/** What the caller says it remembers: `If-Generation`, and `If-Continuity` for what it would accept instead. */
export function rememberedBy(c: Context<AppEnv>): Remembered {
  const generation = c.req.header("if-generation");
  if (generation === undefined) return {};
  if (!/^\d{1,15}$/.test(generation)) {
    throw new HoldfastError("invalid_argument", "If-Generation must be a whole number", { started: "no" });
  }
  const accept = c.req.header("if-continuity");
  if (accept !== undefined && accept !== "same-filesystem") {
    throw new HoldfastError("invalid_argument", "If-Continuity can only be same-filesystem", {
      started: "no",
    });
  }
  return { generation: Number(generation), ...(accept !== undefined && { accept: accept as Continuity }) };
}

/** Every answer about a sandbox says which incarnation it is about. */
export function withGeneration(c: Context<AppEnv>, holding: Holding): void {
  const { generation } = holding.sandbox;
  c.header("Holdfast-Generation", String(generation));
  c.header("Holdfast-Continuity", continuityOf(generation, rememberedBy(c).generation));
}

function iso(ms: number): string {
  return new Date(ms).toISOString();
}

export const continuityHeaders = z.object({
  "if-generation": z
    .string()
    .optional()
    .describe("refuse with state_lost if the sandbox is no longer this generation"),
  "if-continuity": z.string().optional().describe("same-filesystem: accept a new instance on the old disk"),
  "idempotency-key": z.string().optional().describe("the command's or process's id, if the body names none"),
});

export function generationOf(
  c: Context<AppEnv>,
  { sandbox }: Holding,
): { generation: number; continuity: Continuity } {
  const { generation } = sandbox;
  return { generation, continuity: continuityOf(generation, rememberedBy(c).generation) };
}
