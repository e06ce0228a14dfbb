import type { KeeperCall } from "@holdfast/keeper-link";
import type { Context } from "hono";
import type { AppEnv } from "../app.ts";
import type { InUse } from "../sandboxes.ts";
import { withGeneration } from "./describe.ts";

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
    path: path + new URL(c.req.url).search,
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
