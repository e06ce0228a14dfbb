import { continuityOf, type Holding, lossesOf, type SandboxRow, stateOf } from "@holdfast/core";
import type { Continuity, Sandbox } from "@holdfast/protocol";
import type { Context } from "hono";
import type { AppEnv } from "../app.ts";
import { standingClaim } from "../lifecycle/claims.ts";
import { rememberedBy } from "./asked.ts";

/** The rows as users see them. */
export function describe(holding: Holding, remembered?: number): Sandbox {
  const { sandbox, lease } = holding;
  const { id, name, provider, spec, labels, generation, lastDeath, failure } = sandbox;
  const losses = lossesOf(sandbox, generation, remembered);
  return {
    id,
    name,
    state: stateOf(holding),
    generation,
    continuity: continuityOf(sandbox, generation, remembered),
    ...(losses.length > 0 && { losses: [...losses] }),
    provider,
    spec,
    labels,
    limits: lease?.limits ?? { state: "none" },
    ...sandbox.policy,
    createdAt: iso(sandbox.createdAt),
    ...(lease !== undefined && lease.admittedAt !== null && { startedAt: iso(lease.admittedAt) }),
    ...useOf(holding),
    ...(lastDeath !== null && { lastDeath }),
    ...(failure !== null && { failure }),
  };
}

/** Every answer about a sandbox says which incarnation it is about. */
export function withGeneration(c: Context<AppEnv>, { sandbox }: Holding): void {
  c.var.operation.about({ sandbox });
  const { generation, continuity } = generationOf(c, sandbox);
  c.header("Holdfast-Generation", String(generation));
  c.header("Holdfast-Continuity", continuity);
}

/** The same, for answers that have it in their body, too. */
export function generationOf(
  c: Context<AppEnv>,
  sandbox: SandboxRow,
): { generation: number; continuity: Continuity } {
  const { generation } = sandbox;
  return { generation, continuity: continuityOf(sandbox, generation, rememberedBy(c).generation) };
}

export function iso(ms: number): string {
  return new Date(ms).toISOString();
}

function useOf(
  holding: Holding,
): Pick<Sandbox, "lastUsedAt" | "reapsAt" | "heldAwakeBy" | "openTurns" | "claim"> {
  const { lastUsedAt, turns } = holding.sandbox;
  const reapsAt = reapedAt(holding);
  const claim = standingClaim(holding);
  return {
    lastUsedAt: iso(lastUsedAt),
    ...(reapsAt !== null && { reapsAt: iso(reapsAt) }),
    heldAwakeBy: turns.map(({ turnId }) => `turn ${turnId} is open`),
    openTurns: turns.length,
    ...(claim !== undefined && { claim: { holder: claim.holder, expiresAt: iso(claim.expiresAt) } }),
  };
}

/** The nearer of its hard end and the next judgement of idleness, which an open turn holds off. */
function reapedAt({ sandbox, lease }: Holding): number | null {
  if (lease?.phase !== "live" && lease?.phase !== "paused") return null;
  const isHeld = sandbox.turns.length > 0 || sandbox.policy.onIdle === "keep";
  const idleAt = isHeld ? null : lease.idleCheckAt;
  if (idleAt === null || lease.hardStopAt === null) return idleAt ?? lease.hardStopAt;
  return Math.min(idleAt, lease.hardStopAt);
}
