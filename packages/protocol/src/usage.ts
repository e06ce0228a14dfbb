import { z } from "zod";
import { lazily } from "./lazily.ts";

/** What a running sandbox uses, as its keeper sees it. */
export const Usage = lazily(() =>
  z.object({
    at: z.string(),
    /** CPU time of everything that has run in this instance so far. Two samples tell the share between them. */
    cpuMs: z.number(),
    memoryBytes: z.number(),
    /** `cgroup`: as the kernel counts it, with caches. `processes`: what each holds for itself, where that cannot be read. */
    memoryBy: z.enum(["cgroup", "processes"]),
    memoryLimitBytes: z.number().optional(),
    /** Processes that run now; the keeper is not among them. */
    processes: z.number().int(),
    /** Of the workspace and the home directory; measured now and then, because it takes a walk through all files. */
    diskBytes: z.number(),
    /** `false`: there are too many files to count all of them, and it is at least this much. */
    isDiskWhole: z.boolean(),
    /** Another one than before: processes, sessions, terminals or listening ports are not what they were. */
    inside: z.string(),
  }),
);
export type Usage = z.infer<typeof Usage>;

export const UsageQuery = lazily(() =>
  z.object({
    follow: z.enum(["true", "false"]).default("false").describe("server-sent events, one sample each"),
    everyMs: z.coerce.number().int().min(500).max(60_000).default(2_000),
  }),
);
export type UsageQuery = z.infer<typeof UsageQuery>;
