import type { Context } from "hono";
import { HTTPException } from "hono/http-exception";
import type { z } from "zod";
import type { AppEnv } from "../app.ts";
import { invalidArgument } from "./errors.ts";

const JSON_TYPE = /^application\/([a-z.-]+\+)?json *(;|$)/i;

/** The JSON body, checked; refused as the framework would (`errors.ts`). Nothing else is read as JSON: that is all that a page of another site could send unasked. */
export async function bodyOf<T>(c: Context<AppEnv>, shape: z.ZodType<T>): Promise<T> {
  const type = c.req.header("content-type");
  const text = await c.req.raw.text();
  if (type === undefined ? text !== "" : !JSON_TYPE.test(type))
    throw new HTTPException(415, { message: "the request's body is not said to be JSON" });
  const checked = shape.safeParse(parsed(text));
  if (!checked.success) throw invalidArgument(checked.error);
  return checked.data;
}

function parsed(text: string): unknown {
  try {
    return text === "" ? {} : JSON.parse(text);
  } catch (cause) {
    throw new HTTPException(400, { message: "the request's body is not JSON", cause });
  }
}
