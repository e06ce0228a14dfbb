import {
  atLeast,
  flag,
  integer,
  nullable,
  number,
  object,
  optional,
  positive,
  recordOf,
  type Shape,
  shape,
  strictObject,
  text,
  which,
  withDefault,
} from "./plain-check.ts";

/** What every keeper reads before it is used, and all that an idle one ever reads: without zod, see plain-check.ts. */

/** Every request to a keeper carries its caller's fence, beside the instance's secret as a bearer token. */
export const FENCE_HEADER = "Holdfast-Fence";

/**
 * The number of the client's claim, where the sandbox is claimed. Work with a lower one than the keeper has seen is
 * refused: it comes from a client whose claim was taken over, or was delayed on its way.
 */
export const CLAIM_FENCE_HEADER = "Holdfast-Claim-Fence";

/** Read by the keeper from a file descriptor when it starts, so that it is in no argument and no environment. */
export interface KeeperBoot {
  secret: string;
  sandboxId: string;
  instanceId: string;
  generation: number;
  socketPath: string;
  stateDir: string;
  /** The first layer of every command's environment: PATH, HOME, USER, LANG, then the sandbox's own. */
  env: Record<string, string | null>;
  cwd: string;
  /** How many processes and threads there may be when the work starts another; the keeper itself may have a few more. */
  maxProcesses?: number | undefined;
  /** Where the memory controller's counters can be read inside, if anywhere. */
  memoryCgroupDir?: string | undefined;
}

const env = recordOf(nullable(text));

export const KeeperBoot: Shape<KeeperBoot> = shape(
  strictObject({
    secret: which(text, ({ length }) => length >= 32, "Too small: expected string to have >=32 characters"),
    sandboxId: text,
    instanceId: text,
    generation: integer,
    socketPath: text,
    stateDir: text,
    env,
    cwd: text,
    maxProcesses: optional(positive(integer)),
    memoryCgroupDir: optional(text),
  }),
);

/**
 * The gate: the keeper runs nothing until the server has re-read the lease and said this. May be said again, by every
 * server that connects; the newest policy counts. Not strict, so that a later server may say more.
 */
export interface AdmitRequest {
  instanceId: string;
  generation: number;
  fence: number;
  /** Idle time after which the reaper acts; a keeper without a server ends after twice this. */
  lifetimeSeconds: number;
  /** The instance ends at this age, whatever happens. */
  maxLifetimeSeconds: number | null;
  /** A keeper without a server ends after this much time also if it is busy. */
  orphanLimitSeconds: number;
  /** It waits for somebody to ask for it. Once it has been admitted without this, it is somebody's for ever. */
  spare: boolean;
  /** The sandbox's own environment, which a spare was not started with. */
  env: Record<string, string | null>;
}

export const AdmitRequest: Shape<AdmitRequest> = shape(
  object({
    instanceId: text,
    generation: integer,
    fence: integer,
    lifetimeSeconds: withDefault(positive(number), 1800),
    maxLifetimeSeconds: withDefault(nullable(positive(number)), null),
    orphanLimitSeconds: withDefault(positive(number), 86_400),
    spare: withDefault(flag, false),
    env: withDefault(env, {}),
  }),
);

/** As it may be said: what is left out has a default. */
export type AdmitMessage = Pick<AdmitRequest, "instanceId" | "generation" | "fence"> & {
  [Name in keyof AdmitRequest]?: AdmitRequest[Name] | undefined;
};

/** Asks the keeper to refuse new work if its sandbox has been idle for this long. It lapses after 10 s. */
export interface QuiesceRequest {
  lifetimeMs: number;
}
export const QuiesceRequest: Shape<QuiesceRequest> = shape(strictObject({ lifetimeMs: atLeast(0, number) }));

/** `required`: work without a claim is refused, too. */
export interface ClaimFenceRequest {
  fence: number;
  required: boolean;
}
export const ClaimFenceRequest: Shape<ClaimFenceRequest> = shape(
  strictObject({ fence: atLeast(0, integer), required: flag }),
);

/** Why a keeper ended in an orderly way. */
export const endCauses = [
  "told",
  "signal",
  "not_admitted",
  "idle_without_server",
  "orphan_limit",
  "max_lifetime",
] as const;
export type EndCause = (typeof endCauses)[number];
