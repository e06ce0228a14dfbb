import type { Context } from "hono";
import { z } from "zod";
import type { AppEnv } from "../app.ts";
import { workHeaders } from "../http/asked.ts";

/** The keeper reads paths from the query itself, as bytes; here the query is only described and looked over. */
export const where = z.object({
  path: z.string().describe("absolute; percent-encoded bytes, so any name can be said"),
  root: z.string().optional().describe("a directory above it that nothing on the way may lead out of"),
});

export const flag = (text: string) => z.enum(["true", "false"]).optional().describe(text);
export const mode = z.string().optional().describe("permissions, octal, such as 0644");
export const parents = flag("make directories that are missing on the way");
export const bytes = { schema: z.string().meta({ format: "binary" }) };

export const writeHeaders = workHeaders.extend({
  "if-match": z.string().optional().describe("replace it only if its etag is still this one"),
  "if-none-match": z.string().optional().describe("*: only if there is none yet"),
});

export function conditionsOf(c: Context<AppEnv>): Record<string, string> {
  const named = ["if-match", "if-none-match"].map((name) => [name, c.req.header(name)] as const);
  return Object.fromEntries(named.filter((pair): pair is readonly [string, string] => pair[1] !== undefined));
}
