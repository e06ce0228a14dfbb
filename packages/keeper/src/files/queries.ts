import { lazily } from "@holdfast/protocol";
import { z } from "zod";
import type { Call } from "../http/guard.ts";
import type { Conditions } from "./conditions.ts";

// Paths are read from the query as bytes; here they are only known to be there.
export const where = () => ({ path: z.string(), root: z.string().optional() });
export const Flag = lazily(() => z.stringbool().default(false));
export const Mode = lazily(() =>
  z
    .string()
    .regex(/^[0-7]{3,5}$/, "must be octal, such as 0644")
    .transform((text) => Number.parseInt(text, 8) & 0o7777),
);

export function conditionsOf({ request }: Call): Conditions {
  return { ifMatch: request.headers.get("If-Match"), ifNoneMatch: request.headers.get("If-None-Match") };
}

export function bodyOf({ request }: Call): AsyncIterable<Uint8Array> {
  return request.body ?? nothing();
}

async function* nothing(): AsyncGenerator<Uint8Array> {}
