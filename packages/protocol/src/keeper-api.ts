import { z } from "zod";
import { endCauses } from "./keeper-start.ts";
import { lazily } from "./lazily.ts";

/**
 * What the keeper serves on its unix socket, beside the execution routes, which are those of the public API without
 * the sandbox's prefix (`/v1/exec`, `/v1/commands/…`, `/v1/processes/…`). What it is told is in keeper-start.ts; these
 * are its answers.
 */

/** How the last orderly end in this state directory came about; of a crash there is none. */
export const LastEnd = lazily(() =>
  z.object({
    cause: z.enum(endCauses),
    at: z.string(),
    /** Of the instance that ended. */
    generation: z.number().int(),
  }),
);
export type LastEnd = z.infer<typeof LastEnd>;

export const KeeperInfo = lazily(() =>
  z.object({
    protocolVersion: z.string(),
    sandboxId: z.string(),
    instanceId: z.string(),
    generation: z.number().int(),
    admitted: z.boolean(),
    fence: z.number().int(),
    /** The highest number of a claim that it was told of. Absent where it is too old to know of claims. */
    claimFence: z.number().int().optional(),
    /** It was admitted for somebody. Absent where it is too old to know of spares: those never were one. */
    isOwned: z.boolean().optional(),
    shell: z.enum(["bash", "sh", "none"]),
    startedAt: z.string(),
    commandsRunning: z.number().int(),
    processesRunning: z.number().int(),
    lastEnd: LastEnd.optional(),
  }),
);
export type KeeperInfo = z.infer<typeof KeeperInfo>;

export const QuiesceAnswer = lazily(() =>
  z.discriminatedUnion("state", [
    /** Something holds it awake, or was done less than a lifetime ago. `because` is for people. */
    z.object({ state: z.literal("busy"), because: z.array(z.string()), idleForMs: z.number() }),
    z.object({ state: z.literal("quiesced") }),
  ]),
);
export type QuiesceAnswer = z.infer<typeof QuiesceAnswer>;

/** What holds a sandbox awake now, in words for people; and for how long nothing has. */
export const SandboxActivity = lazily(() =>
  z.object({ idleForMs: z.number(), heldAwakeBy: z.array(z.string()) }),
);
export type SandboxActivity = z.infer<typeof SandboxActivity>;
