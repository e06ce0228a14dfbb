import { HoldfastError } from "@holdfast/protocol";
import type { Context } from "hono";
import { HTTPException } from "hono/http-exception";
import type { ContentfulStatusCode } from "hono/utils/http-status";
import { z } from "zod";
import type { AppEnv } from "../app.ts";
import { issueInWords } from "./issue-words.ts";

// Where a schema has words of its own, those win.
z.config({ customError: issueInWords });

/** The one place where a failure becomes HTTP. */
export function errorResponse(error: Error, c: Context<AppEnv>): Response {
  const known = toHoldfastError(error);
  c.var.operation.refused(known.code);
  // A caller that left is told nothing, and its leaving is no fault.
  if (known.code === "internal" && !c.req.raw.signal.aborted) {
    c.var.log.error("request failed", {
      request: c.var.operation.requestId,
      error: error.stack ?? String(error),
    });
  }
  const retryAfter = retryAfterSeconds(known);
  if (retryAfter !== undefined) c.header("Retry-After", String(retryAfter));
  return c.json(known.toBody(), known.status as ContentfulStatusCode);
}

export function invalidArgument(error: z.core.$ZodError): HoldfastError {
  const issues = error.issues.map((issue) => ({ path: issue.path.join("."), message: issue.message }));
  const first = issues[0];
  const where = first?.path ? `${first.path}: ` : "";
  return new HoldfastError("invalid_argument", `${where}${first?.message ?? "invalid request"}`, {
    hint: "the request and its fields are described at /openapi.json",
    details: { issues },
    started: "no",
  });
}

function toHoldfastError(error: Error): HoldfastError {
  if (error instanceof HoldfastError) return error;
  if (error instanceof HTTPException && error.status < 500) {
    const code = error.status === 413 ? "too_large" : "invalid_argument";
    return new HoldfastError(code, error.message || "the request could not be read", {
      hint: "send a JSON body with Content-Type: application/json",
      started: "no",
    });
  }
  return new HoldfastError("internal", "something went wrong inside the server", {
    cause: error,
    hint: "the server's log has the details under this answer's Holdfast-Request-Id",
  });
}

/** Room, and whatever else has no time of its own, is worth a look a second later. */
const DEFAULT_RETRY_MS = 1000;

/** When what stands in the way is tried again, or ends by itself; nothing where waiting does not help. */
function retryAfterSeconds({ details, retryable }: HoldfastError): number | undefined {
  const at = details?.nextAttemptAt ?? details?.expiresAt;
  if (typeof at !== "string" && !retryable) return undefined;
  const ms = typeof at === "string" ? Date.parse(at) - Date.now() : DEFAULT_RETRY_MS;
  return Math.max(1, Math.ceil(ms / 1000));
}
