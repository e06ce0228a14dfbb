import { HoldfastError } from "@holdfast/protocol";
import type { MiddlewareHandler } from "hono";
import type { AppEnv } from "../app.ts";

/** Refuses rather than drowns: a call that would be one too many is told to come back. */
export function concurrencyLimit(max: number): MiddlewareHandler<AppEnv> {
  let inFlight = 0;
  return async (_c, next) => {
    if (inFlight >= max) {
      throw new HoldfastError("limit_reached", `${max} requests are in progress already`, {
        hint: "wait a second and try again",
        started: "no",
      });
    }
    inFlight++;
    try {
      await next();
    } finally {
      inFlight--;
    }
  };
}
