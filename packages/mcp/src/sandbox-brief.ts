import { sandboxStates } from "@holdfast/protocol";
import type { SandboxInfo } from "holdfast";
import { z } from "zod";
import { shortened } from "./clean-text.ts";

/** What of a sandbox helps to choose the next call. */
export const SandboxBrief = z.object({
  name: z.string(),
  id: z.string(),
  state: z.enum(sandboxStates),
  generation: z.number(),
  provider: z.string(),
  image: z.string().optional(),
  labels: z.record(z.string(), z.string()),
  createdAt: z.string(),
  lastUsedAt: z.string(),
  reapsAt: z.string().optional().describe("when it is ended if nobody uses it until then"),
  onIdle: z.enum(["stop", "remove", "keep"]).describe("what that end is"),
  lastDeath: z.string().optional(),
  failure: z.string().optional().describe("why it could not be started"),
});
type SandboxBrief = z.infer<typeof SandboxBrief>;

export function briefOf(info: SandboxInfo): SandboxBrief {
  const { name, id, state, generation, provider, spec, labels, createdAt, lastUsedAt, onIdle } = info;
  const { reapsAt, lastDeath, failure } = info;
  return {
    ...{ name, id, state, generation, provider, labels, createdAt, lastUsedAt, onIdle },
    ...(spec.image !== undefined && { image: spec.image }),
    ...(reapsAt !== undefined && { reapsAt }),
    ...(lastDeath !== undefined && { lastDeath: shortened(`${lastDeath.cause}: ${lastDeath.detail}`, 300) }),
    ...(failure !== undefined && { failure: shortened(failure, 300) }),
  };
}

export function briefLine({ name, id, state, generation, reapsAt, onIdle, lastDeath }: SandboxBrief): string {
  const reaped = reapsAt === undefined ? "" : `, idle end (${onIdle}) at ${reapsAt}`;
  const died = state === "stopped" && lastDeath !== undefined ? `, last ended: ${lastDeath}` : "";
  return `${name} (${id}): ${state}, generation ${generation}${reaped}${died}`;
}
