import { HoldfastError } from "@holdfast/protocol";
import type { Context } from "hono";
import { HTTPException } from "hono/http-exception";
import type { ContentfulStatusCode } from "hono/utils/http-status";
import type { z } from "zod";
import type { AppEnv } from "../app.ts";

/** The one place where a failure becomes HTTP. */
export function errorResponse(error: Error, c: Context<AppEnv>): Response {
  const known = toHoldfastError(error);
  // A caller that left is told nothing, and its leaving is no fault.
  if (known.code === "internal" && !c.req.raw.signal.aborted) {
    c.var.log.error("request failed", { request: c.var.requestId, error: error.stack ?? String(error) });
  }
  if (known.retryable) c.header("Retry-After", String(retryAfterSeconds(known)));
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

function retryAfterSeconds(error: HoldfastError): number {
  const at = error.details?.nextAttemptAt;
  const ms = typeof at === "string" ? Date.parse(at) - Date.now() : 1000;
  return Math.max(1, Math.ceil(ms / 1000));
}
