import type { Holding } from "@holdfast/core";
import type { KeeperCall, KeeperLink } from "@holdfast/keeper-link";
import { HoldfastError } from "@holdfast/protocol";
import type { Context } from "hono";
import type { z } from "zod";
import type { AppEnv } from "../app.ts";
import type { InUse } from "../lifecycle/waker.ts";
import { withGeneration } from "./describe.ts";
import { counted } from "./observed.ts";

/** Asks the keeper, says which incarnation of the sandbox answered, and gives the reply, whose shape was checked. */
export async function ask<T>(
  c: Context<AppEnv>,
  inUse: InUse<KeeperLink>,
  call: KeeperCall,
  shape: z.ZodType<T>,
): Promise<T> {
  return (await askFor(c, inUse, call, shape)).body;
}

/** The same, with the status and the incarnation, where those belong into the answer. */
export async function askFor<T>(
  c: Context<AppEnv>,
  inUse: InUse<KeeperLink>,
  call: KeeperCall,
  shape: z.ZodType<T>,
): Promise<{ status: number; body: T; holding: Holding }> {
  const { reply, holding } = await sent(c, inUse, (link, claim) => link.reply({ ...call, ...claim }, shape));
  return { ...reply, holding };
}

/** The same for what has no answer but that it was done. */
export async function tell(c: Context<AppEnv>, inUse: InUse<KeeperLink>, call: KeeperCall): Promise<void> {
  const { reply } = await sent(c, inUse, (link, claim) => link.send({ ...call, ...claim }));
  await reply.body?.cancel();
}

/** The query goes along as it came; it was checked on the way. */
export function queryOf(c: Context<AppEnv>): string {
  return new URL(c.req.url).search;
}

/** Passes a keeper's stream on as it comes: nothing of it is kept, and a slow client slows only itself. */
export async function passOn(c: Context<AppEnv>, inUse: InUse<KeeperLink>, path: string): Promise<Response> {
  const headers: Record<string, string> = {};
  for (const name of ["accept", "last-event-id"]) {
    const value = c.req.header(name);
    if (value !== undefined) headers[name] = value;
  }
  const call: KeeperCall = { method: "GET", path: path + queryOf(c), headers, signal: c.req.raw.signal };
  const { reply } = await sent(c, inUse, (link) => link.send(call));
  c.header("Content-Type", reply.headers.get("content-type") ?? "application/octet-stream");
  neverHeldBack(c);
  return reply.body === null ? c.body(null) : c.body(reply.body);
}

/** What of an answer about a file is the client's business. */
const FILE_HEADERS = [
  "content-type",
  "content-length",
  "content-range",
  "accept-ranges",
  "etag",
  "last-modified",
  "holdfast-content-length",
  "holdfast-file-mode",
];

/** Passes bytes on with what HTTP says about them: status, ranges, conditions. */
export async function passThrough(
  c: Context<AppEnv>,
  inUse: InUse<KeeperLink>,
  call: KeeperCall,
): Promise<Response> {
  const headers: Record<string, string> = {};
  for (const name of ["range", "if-match"]) {
    const value = c.req.header(name);
    if (value !== undefined) headers[name] = value;
  }
  const { reply } = await sent(c, inUse, (link, claim) =>
    link.send({ ...call, ...claim, headers, signal: c.req.raw.signal }),
  );
  for (const name of FILE_HEADERS) {
    const value = reply.headers.get(name);
    if (value !== null) c.header(name, value);
  }
  neverHeldBack(c);
  c.status(reply.status === 206 ? 206 : 200);
  return reply.body === null ? c.body(null) : c.body(reply.body);
}

/** What one piece of input may have to be sent again with. */
const MAX_REPEATABLE_BYTES = 1024 * 1024;

/** Short input can be sent once more to a keeper that was just told to rest; what is long, or endless, streams. */
export async function repeatable(c: Context<AppEnv>): Promise<{ body: BodyInit; isRepeatable: boolean }> {
  const request = c.req.raw;
  const length = Number(request.headers.get("content-length") ?? Number.NaN);
  if (length <= MAX_REPEATABLE_BYTES) return { body: await request.arrayBuffer(), isRepeatable: true };
  if (request.body === null) return { body: "", isRepeatable: true };
  // What says how long it is was counted by that.
  if (!Number.isNaN(length)) return { body: request.body, isRepeatable: false };
  const body = counted(request.body, (bytes) => c.var.operation.received(bytes));
  return { body, isRepeatable: false };
}

/** No proxy on the way may hold a live stream back. */
export function neverHeldBack(c: Context<AppEnv>): void {
  c.header("Cache-Control", "no-store");
  c.header("X-Accel-Buffering", "no");
}

/** Counts as use in the keeper, so that it does not rest in the next moment. */
export async function touched(inUse: InUse<KeeperLink>): Promise<InUse<KeeperLink>> {
  const { awake } = await untilAwake(inUse, ({ link, claimFence }) =>
    link.touch(claimFence === undefined ? {} : { claimFence }).catch(unlessOlder),
  );
  return awake;
}

/** A keeper that is too old to be touched never rests, either. */
function unlessOlder(error: unknown): void {
  if (!(error instanceof HoldfastError && error.code === "unsupported")) throw error;
}

type Claimed = Pick<KeeperCall, "claimFence">;

/** A keeper that was just told to rest has refused without starting anything: it is woken, and asked once more. */
async function sent<T>(
  c: Context<AppEnv>,
  inUse: InUse<KeeperLink>,
  send: (link: KeeperLink, claim: Claimed) => Promise<T>,
): Promise<{ reply: T; holding: Holding }> {
  c.env.mayBeSilent?.();
  const { reply, awake } = await untilAwake(inUse, ({ link, claimFence }) =>
    send(link, claimFence === undefined ? {} : { claimFence }),
  );
  withGeneration(c, awake.holding);
  return { reply, holding: awake.holding };
}

async function untilAwake<T>(
  inUse: InUse<KeeperLink>,
  send: (inUse: InUse<KeeperLink>) => Promise<T>,
): Promise<{ reply: T; awake: InUse<KeeperLink> }> {
  try {
    return { reply: await send(inUse), awake: inUse };
  } catch (error) {
    if (!(error instanceof HoldfastError && error.code === "quiesced")) throw error;
    const awake = await inUse.again();
    return { reply: await send(awake), awake };
  }
}
