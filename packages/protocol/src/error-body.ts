import { z } from "zod";
import { errorCodes, startedAnswers } from "./errors.ts";
import { lazily } from "./lazily.ts";

export const Started = lazily(() => z.enum(startedAnswers));
export type Started = z.infer<typeof Started>;

/** The schema of an error on the wire, for the OpenAPI document and for checking what a keeper says. */
export const ErrorBody = lazily(() =>
  z.object({
    error: z.object({
      code: z.enum(errorCodes),
      message: z.string(),
      hint: z.string().optional(),
      retryable: z.boolean(),
      details: z.record(z.string(), z.unknown()).optional(),
      started: Started.optional(),
    }),
  }),
);
export type ErrorBody = z.infer<typeof ErrorBody>;
