import { z } from "zod";
import { lazily } from "./lazily.ts";
import { SandboxName } from "./names.ts";
import { Labels, Policy, Sandbox, SandboxSpec } from "./sandbox.ts";

/** `failed`: nothing of it is left but this record, which says why. */
export const SnapshotState = lazily(() => z.enum(["making", "ready", "failed", "deleting"]));
export type SnapshotState = z.infer<typeof SnapshotState>;

/** Who wanted it: a user, a fork that needed one on its way, the reaper before a removal, or an imported archive. */
export const SnapshotOrigin = lazily(() => z.enum(["request", "fork", "reap", "import"]));
export type SnapshotOrigin = z.infer<typeof SnapshotOrigin>;

const PlainPart = lazily(() =>
  z.object({
    /** `workspace`, `home`; of a container also `layer`: what its file system has beyond its image. */
    name: z.string(),
    /** Everything that has a name in it: files, directories, links. */
    files: z.number().int(),
    /** What the files contain; a hole counts as the zeros that it reads as. */
    sizeBytes: z.number().int(),
  }),
);

export const SnapshotPart = lazily(() =>
  PlainPart.extend({
    /** Of a layer: the id of the image that holds it, which is its checksum. */
    image: z.string().optional(),
    /** It was a part of the sandbox, and is not in this: an archive does not take it along. */
    leftOut: z.literal(true).optional(),
  }),
);
export type SnapshotPart = z.infer<typeof SnapshotPart>;

const ExpiresInSeconds = lazily(() =>
  z
    .number()
    .int()
    .min(1)
    .max(10 * 365 * 86_400),
);

export const CreateSnapshot = lazily(() =>
  z.strictObject({
    name: SandboxName.optional(),
    labels: Labels.optional(),
    /** After this it is removed by itself, as soon as nothing is being made from it. */
    expiresInSeconds: ExpiresInSeconds.optional(),
  }),
);
export type CreateSnapshot = z.infer<typeof CreateSnapshot>;

/** What an import says beside the archive. */
export const ImportQuery = lazily(() =>
  z.object({
    name: SandboxName.optional(),
    provider: z.string().optional(),
    expiresInSeconds: z.coerce.number().pipe(ExpiresInSeconds).optional(),
  }),
);
export type ImportQuery = z.infer<typeof ImportQuery>;

/** The files of a sandbox at one moment. Not its processes, its sessions or their logs. */
export const Snapshot = lazily(() =>
  z.object({
    snapshotId: z.string(),
    name: z.string(),
    state: SnapshotState,
    origin: SnapshotOrigin,
    provider: z.string(),
    /** Where it was taken; that sandbox may be gone. */
    sandboxId: z.string(),
    generation: z.number().int(),
    /** What that sandbox was made of, for those that are made from this. */
    spec: SandboxSpec,
    labels: Labels,
    sizeBytes: z.number().int(),
    files: z.number().int(),
    parts: z.array(SnapshotPart),
    /** Of the archive that an export gives, without its manifest: equal on every provider for equal trees. */
    checksum: z.string().optional(),
    /** While it is being made. */
    copiedBytes: z.number().int().optional(),
    createdAt: z.string(),
    expiresAt: z.string().optional(),
    /** Sandboxes that are being made from it: until none is, it stays. */
    usedBy: z.number().int(),
    failure: z.string().optional(),
  }),
);
export type Snapshot = z.infer<typeof Snapshot>;

/** `manifest.json`, the first entry of an archive: what the archive says of itself. */
export const SnapshotManifest = lazily(() =>
  z.object({
    /** The archive's format. */
    holdfast: z.literal(1),
    name: z.string(),
    sandboxId: z.string(),
    generation: z.number().int(),
    image: z.string().optional(),
    createdAt: z.string(),
    parts: z.array(PlainPart),
    /** What the sandbox had beside that, and the archive has not. */
    leftOut: z.array(PlainPart).optional(),
    /** Of everything between this entry and the end mark. */
    checksum: z.string().optional(),
  }),
);
export type SnapshotManifest = z.infer<typeof SnapshotManifest>;

export const SnapshotList = lazily(() =>
  z.object({ snapshots: z.array(Snapshot), nextCursor: z.string().optional() }),
);

/** Each fork has the parent's spec and policy, but for what is said here. */
export const ForkRequest = lazily(() =>
  Policy.partial().extend({
    count: z.number().int().min(1).max(100).default(1),
    /** The forks are called `NAME-1`, `NAME-2` and so on; without it, by their ids. */
    name: SandboxName.optional(),
    labels: Labels.optional(),
  }),
);
export type ForkRequest = z.input<typeof ForkRequest>;

export const ForkResult = lazily(() => z.object({ sandboxes: z.array(Sandbox) }));
