import { z } from "zod";
import { lazily } from "./lazily.ts";
import { ChosenId } from "./names.ts";
import { Death, Labels, Policy, SandboxState } from "./sandbox.ts";

/** What may be changed of a sandbox that exists. Unnamed fields stay as they are. */
export const UpdateSandbox = lazily(() =>
  Policy.pick({
    lifetimeSeconds: true,
    onIdle: true,
    maxLifetimeSeconds: true,
    turnTimeoutSeconds: true,
    snapshotOnReap: true,
  })
    .partial()
    .extend({ labels: Labels.optional() }),
);
export type UpdateSandbox = z.infer<typeof UpdateSandbox>;

/** The same id again begins nothing new: it gives the turn that is open under it. */
export const BeginTurn = lazily(() => z.strictObject({ turnId: ChosenId.optional() }));

/** One unit of an agent's use of a sandbox. */
export const Turn = lazily(() =>
  z.object({
    turnId: z.string(),
    startedAt: z.string(),
    /** While it is open: when it ends by itself, unless a call that carries it comes before. */
    expiresAt: z.string().optional(),
    endedAt: z.string().optional(),
  }),
);
export type Turn = z.infer<typeof Turn>;

// A holder that renews at a third of it survives two lost renewals; one that dies blocks others for no longer.
const ClaimSeconds = lazily(() => z.number().int().min(1).max(86_400).default(60));

export const ClaimRequest = lazily(() =>
  z.strictObject({
    /** Who holds it, for those who find it held. */
    holder: z.string().min(1).max(200),
    ttlSeconds: ClaimSeconds,
    /** Take it from whoever holds it now; that is written down. */
    takeover: z.boolean().default(false),
  }),
);
export type ClaimRequest = z.input<typeof ClaimRequest>;

export const RenewClaim = lazily(() => z.strictObject({ ttlSeconds: ClaimSeconds }));

/** A client's exclusive hold on a sandbox. */
export const Claim = lazily(() =>
  z.object({
    claimId: z.string(),
    holder: z.string(),
    /** Grows with every claim of this sandbox. */
    fence: z.number().int(),
    /** Sent as `Holdfast-Claim` by its holder. Told once, in the answer that makes the claim. */
    token: z.string().optional(),
    expiresAt: z.string(),
  }),
);
export type Claim = z.infer<typeof Claim>;

export const LeasePhase = lazily(() =>
  z.enum([
    "reserved",
    "creating",
    "starting",
    "live",
    "pausing",
    "paused",
    "resuming",
    "stop_due",
    "stopping",
    "quarantined",
    "debt",
    "gone",
  ]),
);
export type LeasePhase = z.infer<typeof LeasePhase>;

/** The record under which an instance may exist, without what only its keeper may know. */
export const LeaseInfo = lazily(() =>
  z.object({
    instanceId: z.string(),
    sandboxId: z.string(),
    provider: z.string(),
    generation: z.number().int(),
    fence: z.number().int(),
    /** `orphan`: found without a record, and only ever stopped. */
    origin: z.enum(["launch", "orphan"]),
    /** It was launched ahead, and waits to be given to whoever creates a sandbox like it. */
    spare: z.literal(true).optional(),
    phase: LeasePhase,
    createdAt: z.string(),
    admittedAt: z.string().optional(),
    stopReason: z.string().optional(),
    /** Of the stop. */
    attempts: z.number().int(),
    nextAttemptAt: z.string().optional(),
    lastError: z.string().optional(),
    /** Why it is known to be gone. */
    evidence: z.object({ kind: z.string(), at: z.string(), detail: z.string() }).optional(),
  }),
);
export type LeaseInfo = z.infer<typeof LeaseInfo>;

export const LeaseList = lazily(() =>
  z.object({ leases: z.array(LeaseInfo), nextCursor: z.string().optional() }),
);

/** An instance as `why` tells of it. */
export const InstanceInfo = lazily(() =>
  z.object({
    phase: LeasePhase,
    provider: z.string(),
    instanceId: z.string(),
    generation: z.number().int(),
    since: z.string(),
    /** Of the stop. */
    attempts: z.number().int(),
    nextAttemptAt: z.string().optional(),
    lastError: z.string().optional(),
  }),
);
export type InstanceInfo = z.infer<typeof InstanceInfo>;

/** Why a sandbox lives, when and why it will be reaped, what prevents that, and why it last died. For people. */
export const Why = lazily(() =>
  z.object({
    sandbox: z.object({
      id: z.string(),
      name: z.string(),
      state: SandboxState,
      generation: z.number().int(),
    }),
    /** Why it lives, in sentences. */
    alive: z.array(z.string()),
    /** What holds the reaper off now, as its keeper sees it. */
    heldAwakeBy: z.array(z.string()),
    idleForSeconds: z.number().optional(),
    /** When idleness would end it if nothing used it until then. */
    reapsAt: z.string().optional(),
    onIdle: Policy.shape.onIdle,
    /** The hard end, whatever it does then. */
    endsAt: z.string().optional(),
    openTurns: z.array(Turn),
    claim: Claim.optional(),
    /** The instance that it has; absent while it has none. */
    instance: InstanceInfo.optional(),
    /** Others that must still be proved gone, but do not stand in its way. */
    debts: z.array(InstanceInfo),
    lastDeath: Death.optional(),
    failure: z.string().optional(),
    /** What will happen next, and when, in one sentence. */
    next: z.string(),
  }),
);
export type Why = z.infer<typeof Why>;

/** What a look at everything that providers hold found, and what was or would be done about it. */
export const SweepReport = lazily(() =>
  z.object({
    dryRun: z.boolean(),
    providers: z.array(
      z.object({
        provider: z.string(),
        found: z.object({ instances: z.number().int(), disks: z.number().int() }),
        /** Ours, known, and as they should be. */
        adopted: z.number().int(),
        actions: z.array(
          z.object({
            do: z.string(),
            sandboxId: z.string(),
            instance: z.string(),
            because: z.string(),
            /** Not before. */
            at: z.string().optional(),
          }),
        ),
        /** Of other installations: never touched. */
        foreign: z.number().int(),
        /** Why nothing was done although there was something to do. */
        braked: z.string().optional(),
        /** Why nothing could be seen. Then nothing is done, either. */
        error: z.string().optional(),
      }),
    ),
  }),
);
export type SweepReport = z.infer<typeof SweepReport>;

/** `total: null`: without a bound. */
export const Amount = lazily(() =>
  z.union([z.object({ used: z.number(), total: z.number().nullable() }), z.object({ unknown: z.string() })]),
);
export type Amount = z.infer<typeof Amount>;

export const ProviderInfo = lazily(() =>
  z.object({
    provider: z.string(),
    /** Whether sandboxes that name none are made there. */
    isDefault: z.boolean(),
    /** Why it is the default although nobody said so: what this machine cannot do. */
    defaultBecause: z.string().optional(),
    /** `closed`: what runs goes on, nothing new is taken. */
    state: z.enum(["ok", "unreachable", "closed"]),
    reason: z.string().optional(),
    capabilities: z.object({
      persistentDisk: z.boolean(),
      images: z.boolean(),
      settleMs: z.number(),
      /** Whether a sandbox can be paused and resumed. */
      pause: z.boolean(),
      /** What freezes it, or why nothing can. */
      pauseDetail: z.string(),
      networks: z.array(z.enum(["none", "full"])),
      /** What `full` reaches, and what it does not. */
      networkDetail: z.string(),
      limits: z.object({
        enforced: z.boolean(),
        detail: z.string(),
        disk: z.object({ enforced: z.boolean(), detail: z.string() }),
      }),
      /** Whether a sandbox may say who its work runs as. */
      users: z.boolean(),
      readOnly: z.boolean(),
      tmpfs: z.boolean(),
      /** Directories of its machine that the operator lets sandboxes see; `:ro` after one that cannot be written. */
      mounts: z.array(z.string()),
      /** Names for `runtime`; empty where it cannot be chosen. */
      runtimes: z.array(z.string()),
    }),
    /** Memory and disk in bytes. */
    capacity: z.object({ slots: Amount, memory: Amount, disk: Amount }),
  }),
);
export type ProviderInfo = z.infer<typeof ProviderInfo>;

export const ProviderList = lazily(() => z.object({ providers: z.array(ProviderInfo) }));

export const AbandonRequest = lazily(() =>
  z.strictObject({
    /** Id or name. */
    sandbox: z.string().min(1),
    /** Written into the timeline. */
    reason: z.string().min(1).max(1000),
  }),
);
