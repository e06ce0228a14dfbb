import { expect, test } from "bun:test";
import { age, parseDurationMs, parseMebibytes } from "./units.ts";

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
