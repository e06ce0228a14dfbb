import { z } from "zod";
import { lazily } from "./lazily.ts";
import { Env, SandboxName } from "./names.ts";
import { Mounts, Tmpfs } from "./spec-paths.ts";

export const Limits = lazily(() =>
  z.strictObject({
    cpus: z.number().positive().max(1024).optional(),
    /** The floor leaves room for the keeper itself. */
    memoryMiB: z.number().int().min(64).optional(),
    /** The floor leaves room for the keeper's own threads. */
    pids: z.number().int().min(32).optional(),
    /** Of everything that it can write to: the workspace, the home directory, and its own layer. */
    diskMiB: z.number().int().min(16).optional(),
    /** Refuse to start rather than run without these limits. */
    required: z.boolean().optional(),
  }),
);
export type Limits = z.infer<typeof Limits>;

// Rows are read on every call, and a change of labels stays in the timeline: they are for finding, not for keeping.
const MOST_LABELS = 64;

export const Labels = lazily(() =>
  z
    .record(z.string().min(1).max(100), z.string().max(1000))
    .refine((labels) => Object.keys(labels).length <= MOST_LABELS, `at most ${MOST_LABELS} labels`),
);

// The kernel gives a program no more than 2 MiB of environment and arguments in any case.
const MAX_ENV_CHARACTERS = 512 * 1024;

const SandboxEnv = lazily(() =>
  Env.refine(
    (env) => JSON.stringify(env).length <= MAX_ENV_CHARACTERS,
    `larger than ${MAX_ENV_CHARACTERS} characters: put large values into files`,
  ),
);

/** As container engines name images: `debian:bookworm`, `registry.example/team/tools@sha256:…`. */
const ImageName = lazily(() =>
  z
    .string()
    .max(255)
    .regex(/^[A-Za-z0-9][A-Za-z0-9._:/@-]*$/, "is not the name of an image"),
);

/** A name or an id that the image knows, or `id:group`. */
const UserName = lazily(() =>
  z
    .string()
    .max(64)
    .regex(
      /^[A-Za-z0-9_][A-Za-z0-9_.-]*(:[A-Za-z0-9_][A-Za-z0-9_.-]*)?$/,
      "is not a user: NAME, UID or UID:GID",
    ),
);

const RuntimeName = lazily(() =>
  z
    .string()
    .max(100)
    .regex(/^[A-Za-z0-9][A-Za-z0-9._-]*$/, "is not the name of a runtime"),
);

/** What a user may ask for. Unknown keys are refused: an option that is accepted and ignored is a lie. */
export const SandboxSpec = lazily(() =>
  z.strictObject({
    provider: z.string().optional(),
    /** What the file system begins with, on providers that have images; without it, the provider's own default. */
    image: ImageName.optional(),
    env: SandboxEnv.optional(),
    limits: Limits.optional(),
    /** `none` has no network at all; `full` reaches out, but never the host's loopback. */
    network: z.enum(["none", "full"]).optional(),
    /** Who the work runs as; without it, a user without any rights. `root` is only ever root inside. */
    user: UserName.optional(),
    /** Nothing can be written but the workspace, the home directory, what is in memory, and writable mounts. */
    readOnly: z.boolean().optional(),
    mounts: Mounts.optional(),
    tmpfs: Tmpfs.optional(),
    /** What runs it, where the provider knows several, such as `runsc` for gVisor. */
    runtime: RuntimeName.optional(),
    /** The id or name of the snapshot that its files begin with; an ephemeral one begins with them each time. */
    fromSnapshot: z.string().min(1).max(100).optional(),
  }),
);
export type SandboxSpec = z.infer<typeof SandboxSpec>;

const Seconds = lazily(() =>
  z
    .number()
    .int()
    .min(1)
    .max(10 * 365 * 86_400),
);

/** How long a sandbox lives, and what ends it. */
export const Policy = lazily(() =>
  z.strictObject({
    /** `false`: removed when its last turn ends. */
    persistent: z.boolean(),
    /** Idle time after which the reaper acts. */
    lifetimeSeconds: Seconds,
    /** `stop` ends the processes and keeps the files; `keep`: never by idleness. */
    onIdle: z.enum(["stop", "remove", "keep"]),
    /** Whether the workspace and the home directory outlive an instance. */
    filesystem: z.enum(["persistent", "ephemeral"]),
    /** A hard end of each instance, whatever it does then. */
    maxLifetimeSeconds: Seconds.nullable(),
    /** A turn that no call renews for so long is over: its client is gone. */
    turnTimeoutSeconds: Seconds,
    /** Before anything but a stop or a deletion that was asked for takes its files, they are copied, and kept for a week. */
    snapshotOnReap: z.boolean().optional(),
    /** `false`: its instance ends with the server, and is not adopted by the next one. */
    persistAcrossRestarts: z.boolean(),
  }),
);
export type Policy = z.infer<typeof Policy>;

export const CreateSandbox = lazily(() =>
  SandboxSpec.extend({
    ...Policy.partial().shape,
    name: SandboxName.optional(),
    labels: Labels.optional(),
  }),
);
export type CreateSandbox = z.infer<typeof CreateSandbox>;

/** The body of get-or-create, whose name is in the path. */
export const EnsureSandbox = lazily(() => CreateSandbox.omit({ name: true }));
export type EnsureSandbox = z.infer<typeof EnsureSandbox>;

export const sandboxStates = [
  "creating",
  "running",
  "paused",
  "stopping",
  "stopped",
  "deleting",
  "failed",
] as const;
export const SandboxState = lazily(() => z.enum(sandboxStates));
export type SandboxState = z.infer<typeof SandboxState>;

/** How the present instance relates to the previous one. */
export const Continuity = lazily(() => z.enum(["same-process", "same-filesystem", "restored", "fresh"]));
export type Continuity = z.infer<typeof Continuity>;

export const LimitsReport = lazily(() =>
  z.object({
    /** `partial`: some are enforced, and some that were asked for cannot be; the detail says which. */
    state: z.enum(["enforced", "partial", "unavailable", "none"]),
    detail: z.string().optional(),
  }),
);
export type LimitsReport = z.infer<typeof LimitsReport>;

export const Death = lazily(() => z.object({ cause: z.string(), at: z.string(), detail: z.string() }));
export type Death = z.infer<typeof Death>;

export const Sandbox = lazily(() =>
  z.object({
    id: z.string(),
    name: z.string(),
    state: SandboxState,
    generation: z.number().int(),
    continuity: Continuity,
    /** What the present instance began without, if a part of the disk, or all of it, had been removed. */
    losses: z.array(z.string()).optional(),
    provider: z.string(),
    spec: SandboxSpec,
    labels: Labels,
    limits: LimitsReport,
    ...Policy.shape,
    createdAt: z.string(),
    startedAt: z.string().optional(),
    /** The last use that was written down; `why` asks the keeper, which knows the last one of all. */
    lastUsedAt: z.string(),
    /** When it will be ended if nobody uses it until then; absent while nothing will, or while an open turn holds it. */
    reapsAt: z.string().optional(),
    /** What holds the reaper off, as far as the server knows by itself; `why` has the whole of it. */
    heldAwakeBy: z.array(z.string()),
    openTurns: z.number().int(),
    /** Who has it for itself alone, if somebody has. */
    claim: z.object({ holder: z.string(), expiresAt: z.string() }).optional(),
    lastDeath: Death.optional(),
    /** Why the last launch failed, while it has not succeeded since. */
    failure: z.string().optional(),
  }),
);
export type Sandbox = z.infer<typeof Sandbox>;

export const SandboxList = lazily(() =>
  z.object({ sandboxes: z.array(Sandbox), nextCursor: z.string().optional() }),
);

export const ListQuery = lazily(() =>
  z.object({
    state: SandboxState.optional(),
    /** `key` or `key=value`. */
    label: z.string().optional(),
    limit: z.coerce.number().int().min(1).max(1000).default(100),
    cursor: z.string().optional(),
  }),
);

export const SandboxEvent = lazily(() =>
  z.object({
    seq: z.number().int(),
    at: z.string(),
    type: z.string(),
    cause: z.string().optional(),
    /** Who wanted it: a client, the operator, a server. */
    actor: z.string().optional(),
    detail: z.record(z.string(), z.unknown()),
  }),
);
export type SandboxEvent = z.infer<typeof SandboxEvent>;
