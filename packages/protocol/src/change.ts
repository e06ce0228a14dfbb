import { z } from "zod";
import { lazily } from "./lazily.ts";
import { Sandbox } from "./sandbox.ts";

/** What a follower of all sandboxes is told. Only the latest counts: a slow follower gets fewer events, never old ones. */
export const Change = lazily(() =>
  z.discriminatedUnion("type", [
    /** First of all, and whenever something may have been missed: look at the list now. */
    z.object({ type: z.literal("resync"), reason: z.string() }),
    /** Something about it was written; this is how it is now. */
    z.object({ type: z.literal("changed"), sandbox: Sandbox }),
    z.object({ type: z.literal("gone"), sandboxId: z.string() }),
  ]),
);
export type Change = z.infer<typeof Change>;
