import type { Context } from "hono";
import type { AppEnv } from "../app.ts";

/** The `Idempotency-Key` header is the id of what is started, unless the body names one. */
export function withKey<K extends string, T extends { [name in K]?: string | undefined }>(
  c: Context<AppEnv>,
  name: K,
  request: T,
): T {
  const key = request[name] ?? c.req.header("idempotency-key");
  return key === undefined ? request : { ...request, [name]: key };
}
