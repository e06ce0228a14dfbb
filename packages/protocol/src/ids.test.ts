import { expect, test } from "bun:test";
import { makeId, timeOfId } from "./ids.ts";
import { ChosenId } from "./names.ts";

test("an id carries its time and is one that a caller might have chosen", () => {
  const at = Date.parse("2026-11-15T22:30:00Z");
  const id = makeId("cmd", at);
  expect(ChosenId.parse(id)).toBe(id);
  expect(timeOfId(id)).toBe(at);
  expect(makeId("proc", at)).not.toBe(makeId("proc", at));
});

test.each(["build-1", "cmd_short_x", "cmd_0mi1r5v4k_8f3k2j9x1q7w5e4r0", ""])("%p carries no time", (id) =>
  expect(timeOfId(id)).toBeUndefined(),
);
