import { ErrorBody, LOG_FRAMES_TYPE } from "@holdfast/protocol";
import { z } from "zod";

export const byId = z.object({ id: z.string().describe("a sandbox's id or name") });

/** Every route may refuse in one shape. */
export const refusals = {
  default: { description: "refused", content: { "application/json": { schema: ErrorBody } } },
} as const;

export function jsonBody<T extends z.ZodType>(schema: T) {
  return { body: { required: true, content: { "application/json": { schema } } } } as const;
}

export function answer<T extends z.ZodType>(description: string, schema: T) {
  return { description, content: { "application/json": { schema } } } as const;
}

export const LogQuery = z.object({
  since: z.coerce
    .number()
    .int()
    .min(0)
    .optional()
    .describe("the offset to begin at; without it, the oldest kept"),
  follow: z.enum(["true", "false"]).optional().describe("stay until the program ends"),
  stream: z.enum(["stdout", "stderr"]).optional().describe("only this one"),
});

export const logAnswer = {
  description: "by Accept: server-sent events, raw bytes, or frames",
  content: {
    "text/event-stream": { schema: z.string() },
    "application/octet-stream": { schema: z.string().meta({ format: "binary" }) },
    [LOG_FRAMES_TYPE]: { schema: z.string().meta({ format: "binary" }) },
  },
};

export const QueueQuery = z.object({
  queue: z.coerce
    .number()
    .min(0)
    .max(600)
    .default(0)
    .describe("seconds to wait for room if there is none now; 0: be told at once"),
});
