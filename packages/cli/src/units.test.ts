import { expect, test } from "bun:test";
import { age, ahead, amount, parseDurationMs, parseMebibytes, parseSeconds } from "./units.ts";

test.each([
  ["500ms", 500],
  ["30s", 30_000],
  ["30", 30_000],
  ["1.5m", 90_000],
  ["2h", 7_200_000],
  ["1d", 86_400_000],
])("%p is %p ms", (text, ms) => expect(parseDurationMs(text)).toBe(ms));

test.each(["", "0", "-1", "soon", "5 m", "1e3", "0.1ms"])("%p is no time", (text) => {
  expect(() => parseDurationMs(text)).toThrow("Give a time");
});

test.each([
  ["512", 512],
  ["512m", 512],
  ["512MiB", 512],
  ["2g", 2048],
  ["1.5GB", 1536],
])("%p is %p MiB", (text, mebibytes) => expect(parseMebibytes(text)).toBe(mebibytes));

test.each(["", "0", "2t", "g"])("%p is no amount", (text) =>
  expect(() => parseMebibytes(text)).toThrow("Give an amount"),
);

const now = Date.parse("2026-11-15T12:00:00Z");

test.each([
  ["2026-11-15T12:00:05Z", "0s"],
  ["2026-11-15T11:59:59.500Z", "0s"],
  ["2026-11-15T11:59:01Z", "59s"],
  ["2026-11-15T11:01:00Z", "59m"],
  ["2026-11-14T12:00:01Z", "23h"],
  ["2026-10-15T12:00:00Z", "31d"],
  [undefined, "-"],
])("%p is %p ago", (at, expected) => expect(age(at, now)).toBe(expected));

test.each([
  ["2026-11-15T11:59:00Z", "0s"],
  ["2026-11-15T12:12:30Z", "12m"],
])("%p is %p ahead", (at, expected) => expect(ahead(at, now)).toBe(expected));

test("what the server counts in seconds must be whole seconds", () => {
  expect(["90s", "1.5m", "3d", "45"].map(parseSeconds)).toEqual([90, 90, 259_200, 45]);
  expect(() => parseSeconds("1.5s")).toThrow("whole seconds");
});

test.each([
  [0, "0M"],
  [512 * 1024 ** 2, "512M"],
  [3.5 * 1024 ** 3, "3.5G"],
  [100.4 * 1024 ** 3, "100G"],
])("%p bytes are %p", (bytes, expected) => expect(amount(bytes)).toBe(expected));
