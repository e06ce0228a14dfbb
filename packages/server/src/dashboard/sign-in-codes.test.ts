import { expect, test } from "bun:test";
import { SignInCodes } from "./sign-in-codes.ts";

test("a code is good once, and for ten minutes", () => {
  let now = 0;
  const codes = new SignInCodes({ now: () => now });
  const { code, expiresAt } = codes.make();
  expect(expiresAt).toBe("1970-01-01T00:10:00.000Z");
  expect([codes.take("another"), codes.take(code), codes.take(code)]).toEqual([false, true, false]);
  const late = codes.make().code;
  now = 600_000;
  expect(codes.take(late)).toBe(false);
});
