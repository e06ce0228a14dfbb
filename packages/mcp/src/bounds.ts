import { z } from "zod";

/** About 4,000 tokens of each stream: enough to see what happened, little enough to go on talking. */
const DEFAULT_OUTPUT_BYTES = 16 * 1024;
const MAX_OUTPUT_BYTES = 128 * 1024;

/** Under a minute, after which clients give a call up by default. */
const DEFAULT_WAIT_MS = 30_000;
const MAX_WAIT_MS = 10 * 60_000;

export const maxOutputBytes = z
  .number()
  .int()
  .min(256)
  .max(MAX_OUTPUT_BYTES)
  .default(DEFAULT_OUTPUT_BYTES)
  .describe("bound of the output here; the rest is counted and stays in the log");

export const waitMs = z.number().int().min(0).max(MAX_WAIT_MS).default(DEFAULT_WAIT_MS);

/** The largest message on either transport: a file of 12 MB as base64. Larger ones go through `holdfast cp`. */
export const MAX_MESSAGE_BYTES = 16 * 1024 * 1024;
