import type { KeeperCall } from "@holdfast/keeper-link";
import type { Context } from "hono";
import type { z } from "zod";
import type { AppEnv } from "../app.ts";
import type { InUse } from "../sandboxes.ts";
import { withGeneration } from "./describe.ts";

/** Asks the keeper, says which incarnation of the sandbox answered, and gives the reply, whose shape was checked. */
export async function ask<T>(
  c: Context<AppEnv>,
  { holding, link }: InUse,
  call: KeeperCall,
  shape: z.ZodType<T>,
): Promise<T> {
  c.env.mayBeSilent?.();
  const reply = await link.json(call, shape);
  withGeneration(c, holding);
  return reply;
}

/** The same for what has no answer but that it was done. */
export async function tell(c: Context<AppEnv>, { holding, link }: InUse, call: KeeperCall): Promise<void> {
  c.env.mayBeSilent?.();
  const reply = await link.send(call);
  await reply.body?.cancel();
  withGeneration(c, holding);
}

/** The query goes along as it came; it was checked on the way. */
export function queryOf(c: Context<AppEnv>): string {
  return new URL(c.req.url).search;
}

/** Passes a keeper's stream on as it comes: nothing of it is kept, and a slow client slows only itself. */
export async function passOn(c: Context<AppEnv>, { holding, link }: InUse, path: string): Promise<Response> {
  c.env.mayBeSilent?.();
  const headers: Record<string, string> = {};
  for (const name of ["accept", "last-event-id"]) {
    const value = c.req.header(name);
    if (value !== undefined) headers[name] = value;
  }
  const call: KeeperCall = {
    method: "GET",
    path: path + queryOf(c),
    headers,
    signal: c.req.raw.signal,
  };
  const reply = await link.send(call);
  withGeneration(c, holding);
  c.header("Content-Type", reply.headers.get("content-type") ?? "application/octet-stream");
  // No proxy on the way may hold a live log back.
  c.header("Cache-Control", "no-store");
  c.header("X-Accel-Buffering", "no");
  return reply.body === null ? c.body(null) : c.body(reply.body);
}
