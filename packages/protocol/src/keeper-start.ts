import * as z from "zod/mini";
import { lazily } from "./lazily.ts";

/**
 * What every keeper reads before it is used, and all that an idle one ever reads. By the small form of zod: the methods
 * that the other puts on each kind of schema are 0.4 MiB of a keeper.
 */

/** Read by the keeper from a file descriptor when it starts, so that it is in no argument and no environment. */
export const KeeperBoot = lazily(() =>
  z.strictObject({
    secret: z.string().check(z.minLength(32)),
    sandboxId: z.string(),
    instanceId: z.string(),
    generation: z.int(),
    socketPath: z.string(),
    stateDir: z.string(),
    /** The first layer of every command's environment: PATH, HOME, USER, LANG, then the sandbox's own. */
    env: z.record(z.string(), z.nullable(z.string())),
    cwd: z.string(),
    /** How many processes and threads there may be when the work starts another; the keeper itself may have a few more. */
    maxProcesses: z.optional(z.int().check(z.positive())),
    /** Where the memory controller's counters can be read inside, if anywhere. */
    memoryCgroupDir: z.optional(z.string()),
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
    generation: z.int(),
    fence: z.int(),
    /** Idle time after which the reaper acts; a keeper without a server ends after twice this. */
    lifetimeSeconds: z._default(z.number().check(z.positive()), 1800),
    /** The instance ends at this age, whatever happens. */
    maxLifetimeSeconds: z._default(z.nullable(z.number().check(z.positive())), null),
    /** A keeper without a server ends after this much time also if it is busy. */
    orphanLimitSeconds: z._default(z.number().check(z.positive()), 86_400),
    /** It waits for somebody to ask for it. Once it has been admitted without this, it is somebody's for ever. */
    spare: z._default(z.boolean(), false),
    /** The sandbox's own environment, which a spare was not started with. */
    env: z._default(z.record(z.string(), z.nullable(z.string())), {}),
  }),
);
export type AdmitRequest = z.infer<typeof AdmitRequest>;
/** As it may be said: what is left out has a default. */
export type AdmitMessage = z.input<typeof AdmitRequest>;
