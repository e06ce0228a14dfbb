import type { z } from "zod";

const makers = new WeakMap<z.core.$ZodType, () => z.core.$ZodType>();

/**
 * A schema that is made when it is first used. There are a thousand of them, and making them all was half of the time
 * in which a keeper starts; one keeper ever uses a few. It looks like the schema in every way.
 */
export function lazily<Schema extends z.core.$ZodType>(make: () => Schema): Schema {
  let made: Schema | undefined;
  const schema = (): Schema => {
    made ??= make();
    return made;
  };
  const lazy = new Proxy(Object.create(null) as Schema, {
    get: (_, key) => Reflect.get(schema(), key),
    has: (_, key) => Reflect.has(schema(), key),
    getPrototypeOf: () => Reflect.getPrototypeOf(schema()),
  });
  makers.set(lazy, schema);
  return lazy;
}

/** The schema itself: what `optional()` and the like of a lazy one refer to. */
export function eagerly(schema: z.core.$ZodType): z.core.$ZodType {
  return makers.get(schema)?.() ?? schema;
}
