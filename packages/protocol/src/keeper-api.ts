import { z } from "zod";
import { lazily } from "./lazily.ts";

/**
 * What the keeper serves on its unix socket, beside the execution routes, which are those of the public API without
 * the sandbox's prefix (`/v1/exec`, `/v1/commands/…`, `/v1/processes/…`). Every request carries the instance's secret
 * as a bearer token and the caller's fence.
 */
export const FENCE_HEADER = "Holdfast-Fence";

/**
 * The number of the client's claim, where the sandbox is claimed. Work with a lower one than the keeper has seen is
 * refused: it comes from a client whose claim was taken over, or was delayed on its way.
 */
export const CLAIM_FENCE_HEADER = "Holdfast-Claim-Fence";

/** Why a keeper ended in an orderly way. */
export const EndCause = lazily(() =>
  z.enum(["told", "signal", "not_admitted", "idle_without_server", "orphan_limit", "max_lifetime"]),
);
export type EndCause = z.infer<typeof EndCause>;

/** How the last orderly end in this state directory came about; of a crash there is none. */
export const LastEnd = lazily(() =>
  z.object({
    cause: EndCause,
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

/** Asks the keeper to refuse new work if its sandbox has been idle for this long. It lapses after 10 s. */
export const QuiesceRequest = lazily(() => z.strictObject({ lifetimeMs: z.number().min(0) }));
export type QuiesceRequest = z.infer<typeof QuiesceRequest>;

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

/** `required`: work without a claim is refused, too. */
export const ClaimFenceRequest = lazily(() =>
  z.strictObject({ fence: z.number().int().min(0), required: z.boolean() }),
);
export type ClaimFenceRequest = z.infer<typeof ClaimFenceRequest>;
