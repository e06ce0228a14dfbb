import { z } from "zod";
import { lazily } from "./lazily.ts";
import { AbsolutePath } from "./names.ts";

/** `true` where it is left out: who watches a folder means what is in it. */
const Flag = lazily(() =>
  z
    .enum(["true", "false"])
    .default("true")
    .transform((text) => text === "true"),
);

export const WatchQuery = lazily(() =>
  z.strictObject({
    path: AbsolutePath.describe("a directory, or one file"),
    recursive: Flag.describe("also what is in its directories, and in those that come later"),
    since: z.string().max(100).optional().describe("a cursor: go on after it; `Last-Event-ID` wins"),
  }),
);
export type WatchQuery = z.infer<typeof WatchQuery>;

/** A path as text; where its bytes are no UTF-8, they are there exactly, too. */
const path = { path: z.string(), pathBase64: z.string().optional() };
const directory = { directory: z.boolean() };

/** Why what was seen before may not be the whole truth any more. */
export const ResyncReason = lazily(() =>
  z.enum(["overflow", "cursor_expired", "cursor_unknown", "watch_limit", "root_gone"]),
);
export type ResyncReason = z.infer<typeof ResyncReason>;

/** What can happen to a file. What happens to a directory happens to all that is in it. */
export const FileChange = lazily(() =>
  z.discriminatedUnion("type", [
    z.object({ type: z.literal("created"), ...path, ...directory }),
    z.object({ type: z.literal("modified"), ...path, ...directory }),
    z.object({ type: z.literal("deleted"), ...path, ...directory }),
    z.object({
      type: z.literal("moved"),
      from: z.string(),
      fromBase64: z.string().optional(),
      ...path,
      ...directory,
    }),
  ]),
);
export type FileChange = z.infer<typeof FileChange>;

/** Everything that a watch says. After `ready`, and after every `resync`, whoever looks at the files misses nothing. */
export const WatchEvent = lazily(() =>
  z.discriminatedUnion("type", [
    z.object({ type: z.literal("ready") }),
    ...FileChange.options,
    z.object({ type: z.literal("resync"), reason: ResyncReason, message: z.string() }),
  ]),
);
export type WatchEvent = z.infer<typeof WatchEvent>;
