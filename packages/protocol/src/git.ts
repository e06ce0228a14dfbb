import { z } from "zod";
import { lazily } from "./lazily.ts";
import { AbsolutePath, ChosenId, DurationMs, TextWithoutNul } from "./names.ts";

const FORMS = "https://…, http://…, ssh://…, git://…, file://…, user@host:path, or an absolute path";

/**
 * Where a repository is. Forms that run a program (`ext::`), and whatever git could take for an option, are refused; so
 * is a password in it, because git writes a URL to disk.
 */
export const GitUrl = lazily(() =>
  TextWithoutNul.max(4096)
    .refine(
      (url) =>
        /^(https?|ssh|git|file):\/\/[^-\s]/.test(url) ||
        /^[\w.]+@[\w][\w.-]*:[^-]/.test(url) ||
        url.startsWith("/"),
      `must be ${FORMS}`,
    )
    .refine((url) => !/[\r\n]/.test(url), "must be one line")
    .refine(
      (url) => !/^https?:\/\/[^/]*@/.test(url),
      "must not hold a user or password: give them as `credentials`",
    ),
);

/** What git could not take for an option, a range or a pattern. */
export const GitRef = lazily(() =>
  z
    .string()
    .min(1)
    .max(1000)
    .regex(/^[^-\s~^:?*[\\\p{Cc}][^\s~^:?*[\\\p{Cc}]*$/u, "is not the name of a branch or tag, or a commit"),
);

/** A line each in what git asks for them, so no line may be smuggled in. */
const OneLine = lazily(() =>
  TextWithoutNul.max(4096).refine((text) => !/[\r\n]/.test(text), "must be one line"),
);

export const GitCredentials = lazily(() =>
  z
    .strictObject({ username: OneLine.min(1).default("x-access-token"), password: OneLine.min(1) })
    .describe("for this one command, over http or https, to the URL's own host"),
);
export type GitCredentials = z.infer<typeof GitCredentials>;

export const CloneRequest = lazily(() =>
  z.strictObject({
    url: GitUrl,
    path: AbsolutePath.describe("where to; must not exist, or be an empty directory"),
    branch: GitRef.optional().describe("or a tag; the remote's own choice if left out"),
    depth: z.number().int().min(1).optional().describe("so many commits of history"),
    sparse: z
      .array(OneLine.min(1).refine((path) => !path.startsWith("-"), "must not begin with -"))
      .min(1)
      .max(1000)
      .optional()
      .describe("only these directories, beside the files at the top"),
    submodules: z.boolean().optional().describe("with its submodules"),
    credentials: GitCredentials.optional(),
    timeoutMs: DurationMs.min(1).optional(),
    yieldMs: DurationMs.optional().describe(
      "answer after this time also if it is not done; ask again to go on",
    ),
    commandId: ChosenId.optional().describe(
      "its progress is this command's log; sent again, it is the same clone",
    ),
  }),
);
export type CloneRequest = z.infer<typeof CloneRequest>;

export const CloneResult = lazily(() =>
  z.object({
    status: z.literal("cloned"),
    commandId: z.string(),
    path: z.string(),
    commit: z.string().nullable().describe("`null` for a repository without any"),
    branch: z.string().nullable().describe("`null` if none is checked out"),
  }),
);
export type CloneResult = z.infer<typeof CloneResult>;

export const CloneState = lazily(() =>
  z.discriminatedUnion("status", [
    CloneResult,
    z.object({ status: z.literal("running"), commandId: z.string() }),
  ]),
);
export type CloneState = z.infer<typeof CloneState>;

const path = { path: z.string(), pathBase64: z.string().optional() };
const from = { from: z.string().optional(), fromBase64: z.string().optional() };

export const GitChange = lazily(() =>
  z.enum([
    "unmodified",
    "modified",
    "typechanged",
    "added",
    "deleted",
    "renamed",
    "copied",
    "unmerged",
    "untracked",
  ]),
);
export type GitChange = z.infer<typeof GitChange>;

export const GitStatusFile = lazily(() =>
  z.object({
    ...path,
    ...from,
    index: GitChange.describe("what is staged"),
    worktree: GitChange.describe("what is not"),
    conflicted: z.boolean(),
  }),
);

export const GitStatus = lazily(() =>
  z.object({
    branch: z.string().nullable(),
    commit: z.string().nullable(),
    upstream: z.string().optional(),
    ahead: z.number().int().optional(),
    behind: z.number().int().optional(),
    clean: z.boolean(),
    files: z.array(GitStatusFile),
  }),
);
export type GitStatus = z.infer<typeof GitStatus>;

const repository = { path: AbsolutePath.describe("of the repository, or anywhere in it") };

export const StatusQuery = lazily(() => z.strictObject(repository));

export const DiffQuery = lazily(() =>
  z.strictObject({
    ...repository,
    staged: z.enum(["true", "false"]).default("false").describe("what is staged, not what is not"),
    base: GitRef.optional().describe("compare with this commit, branch or tag"),
    maxPatchBytes: z.coerce
      .number()
      .int()
      .min(0)
      .max(64 * 1024 * 1024)
      .default(1024 * 1024)
      .describe("patches beyond this are left out, and `truncated` says so"),
  }),
);
export type DiffQuery = z.infer<typeof DiffQuery>;

export const GitDiffFile = lazily(() =>
  z.object({
    ...path,
    ...from,
    change: GitChange,
    additions: z.number().int().nullable().describe("lines; `null` for a binary file"),
    deletions: z.number().int().nullable(),
    binary: z.boolean(),
    patch: z.string().optional().describe("absent if it is binary, or left out"),
  }),
);

export const GitDiff = lazily(() => z.object({ files: z.array(GitDiffFile), truncated: z.boolean() }));
export type GitDiff = z.infer<typeof GitDiff>;
