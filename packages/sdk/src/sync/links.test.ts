import { expect, test } from "bun:test";
import { whyNotLink } from "./links.ts";

test.each([
  ["a", "b", true],
  ["a", "./b//c/.", true],
  ["a", ".", true],
  ["d/a", "..", true],
  ["d/e/a", "../../b", true],
  ["d/e/a", ".././../b/c", true],
  ["a", "", true],
  ["a", "..", false],
  ["a", "../b", false],
  ["d/a", "../../b", false],
  // `d/e` may be a link, and then nobody knows what is above it.
  ["a", "d/..", false],
  ["a", "d/e/../f", false],
  ["d/a", "../e/../f", false],
  ["a", "/", false],
  ["a", "/etc/passwd", false],
  ["a", "C:/Windows", false],
  ["a", "..\\b", false],
  ["a", "\ufffd", false],
])("%s that leads to %s is synced: %p", (path, target, isSynced) => {
  expect(whyNotLink(path, target) === undefined).toBe(isSynced);
});
