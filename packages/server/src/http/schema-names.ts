import * as wire from "@holdfast/protocol";
import { z } from "zod";

/** Gives the protocol's schemas their own names in the OpenAPI document, so that a generated client has them, too. */
export function nameSchemas(): void {
  for (const [name, schema] of Object.entries(wire)) {
    // Where the document's generator keeps a name. It reads zod's own `id` only of schemas that were made through it.
    if (!isShape(schema)) continue;
    const known = { ...schema.meta(), _internal: { refId: name } };
    for (const one of new Set([schema, wire.eagerly(schema)])) z.globalRegistry.add(one, known);
  }
}

/** What a reader looks up by name. A string with a rule is clearer where it stands. */
function isShape(value: unknown): value is z.ZodType {
  return value instanceof z.ZodObject || value instanceof z.ZodUnion || value instanceof z.ZodEnum;
}
