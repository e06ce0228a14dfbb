import { z } from "zod";
import { lazily } from "./lazily.ts";
import { Env } from "./names.ts";

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

/** Read by the keeper from a file descriptor when it starts, so that it is in no argument and no environment. */
export const KeeperBoot = lazily(() =>
  z.strictObject({
    secret: z.string().min(32),
    sandboxId: z.string(),
    instanceId: z.string(),
    generation: z.number().int(),
    socketPath: z.string(),
    stateDir: z.string(),
    /** The first layer of every command's environment: PATH, HOME, USER, LANG, then the sandbox's own. */
    env: Env,
    cwd: z.string(),
    /** How many processes and threads there may be when the work starts another; the keeper itself may have a few more. */
    maxProcesses: z.number().int().positive().optional(),
    /** Where the memory controller's counters can be read inside, if anywhere. */
    memoryCgroupDir: z.string().optional(),
  }),
);
export type KeeperBoot = z.infer<typeof KeeperBoot>;

/**
 * The gate: the keeper runs nothing until the server has re-read the lease and said this. May be said again, by every
 * server that connects; the newest policy counts. Not strict, so that a later server may say more.
 */
export const AdmitRequest = lazily(() =>
  z.object({
    instanceId: z.string(),
    generation: z.number().int(),
    fence: z.number().int(),
    /** Idle time after which the reaper acts; a keeper without a server ends after twice this. */
    lifetimeSeconds: z.number().positive().default(1800),
    /** The instance ends at this age, whatever happens. */
    maxLifetimeSeconds: z.number().positive().nullable().default(null),
    /** A keeper without a server ends after this much time also if it is busy. */
    orphanLimitSeconds: z.number().positive().default(86_400),
  }),
);
export type AdmitRequest = z.infer<typeof AdmitRequest>;
/** As it may be said: what is left out has a default. */
export type AdmitMessage = z.input<typeof AdmitRequest>;

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
