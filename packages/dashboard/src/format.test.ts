import { expect, test } from "bun:test";
import { age, bytes, commandLine, countdown } from "./format.ts";

test.each([
  [0, "0 s"],
  [-5, "0 s"],
  [59_999, "59 s"],
  [60_000, "1 min"],
  [3_600_000 * 25, "1 d"],
])("age %i: %s", (ms, text) => expect(age(ms)).toBe(text));

test.each([
  [0, "0:00"],
  [999, "0:01"],
  [1_799_000, "29:59"],
  [3_723_000, "1:02:03"],
  [90_000_000, "1 d 1 h"],
])("countdown %i: %s", (ms, text) => expect(countdown(ms)).toBe(text));

test.each([
  [0, "0 B"],
  [1023, "1023 B"],
  [1536, "1.5 KiB"],
  [150 * 1024 ** 2, "150 MiB"],
  [2 ** 62, "4194304 TiB"],
])("bytes %i: %s", (count, text) => expect(bytes(count)).toBe(text));

test("a command is shown as it would be typed", () => {
  expect([commandLine("a | b"), commandLine(["git", "log"])]).toEqual(["a | b", "git log"]);
});
