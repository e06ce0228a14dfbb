import { expect, test } from "bun:test";
import { CreateSandbox } from "@holdfast/protocol";
import { z } from "zod";
import { invalidArgument } from "./errors.ts";

const Sizes = z.strictObject({ text: z.string().min(1).max(3), list: z.array(z.string()).max(1) }).partial();

test.each([
  [CreateSandbox, { lifetimeSeconds: -1 }, "lifetimeSeconds: must be at least 1"],
  [CreateSandbox, { lifetimeSeconds: 1e9 }, "lifetimeSeconds: must be at most 315360000"],
  [CreateSandbox, { lifetimeSeconds: 1.5 }, "lifetimeSeconds: must be a whole number"],
  [CreateSandbox, { lifetimeSeconds: "10" }, "lifetimeSeconds: must be a number"],
  [CreateSandbox, { onIdle: "die" }, 'onIdle: must be "stop" or "remove" or "keep"'],
  [CreateSandbox, { lifetime: 5 }, 'there is no field "lifetime" here'],
  [CreateSandbox, { name: "A" }, "name: 1 to 63 of a-z, 0-9 and -, not at an end"],
  [Sizes, { text: "" }, "text: must not be empty"],
  [Sizes, { text: "long" }, "text: must have at most 3 characters"],
  [Sizes, { list: ["a", "b"] }, "list: must have at most 1 of them"],
  [z.object({ since: z.coerce.number() }), { since: "x" }, "since: must be a number"],
  [z.object({ reason: z.string() }), {}, "reason: is missing"],
])("%#: what is wrong is said in words for whoever sent it", (schema, sent, message) => {
  const { error } = schema.safeParse(sent);
  if (error === undefined) throw new Error("nothing is wrong with it");
  expect(invalidArgument(error).message).toBe(message);
});
