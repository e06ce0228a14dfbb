import { z } from "zod";
import { lazily } from "./lazily.ts";
import { AbsolutePath, TextWithoutNul } from "./names.ts";

/** Below the batch's root. That nothing leads out of it, the keeper sees to. */
const RelativePath = lazily(() =>
  TextWithoutNul.min(1)
    .max(4095)
    .refine((path) => !path.startsWith("/"), "must be relative to the root")
    .refine(
      (path) => !path.split("/").some((part) => part === "" || part === "." || part === ".."),
      "must have no empty part, no . and no ..",
    ),
);

const condition = { path: RelativePath, expected: z.string().nullable() };

export const BatchEntry = lazily(() =>
  z.discriminatedUnion("op", [
    z.strictObject({
      op: z.literal("write"),
      ...condition,
      sizeBytes: z.number().int().min(0),
      mode: z.string().regex(/^0?[0-7]{3}$/),
    }),
    z.strictObject({ op: z.literal("link"), ...condition, target: TextWithoutNul.min(1).max(4095) }),
    z.strictObject({ op: z.literal("delete"), ...condition }),
  ]),
);

export type BatchEntry = z.infer<typeof BatchEntry>;

export const BatchRoot = lazily(() => z.strictObject({ root: AbsolutePath }));

const error = lazily(() => z.object({ code: z.string(), message: z.string() }));

export const BatchResults = lazily(() =>
  z.object({
    results: z.array(
      z.union([
        z.object({ path: z.string(), error }),
        z.object({ path: z.string(), etag: z.string().optional() }),
      ]),
    ),
  }),
);

export const BatchReadRequest = lazily(() =>
  z.strictObject({
    root: AbsolutePath,
    paths: z.array(RelativePath).max(100_000),
    want: z.enum(["content", "sha256"]),
  }),
);
export type BatchReadRequest = z.infer<typeof BatchReadRequest>;
