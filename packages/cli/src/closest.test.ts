import { expect, test } from "bun:test";
import { closest } from "./closest.ts";

test.each([
  ["isue-42", "issue-42"],
  ["issue-24", "issue-42"],
  ["wbe", undefined],
  ["webb", "web"],
  ["something-else", undefined],
])("%p means %p", (word, expected) => expect(closest(word, ["web", "issue-42", "issue-421"])).toBe(expected));
