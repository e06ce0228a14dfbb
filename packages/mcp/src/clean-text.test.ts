import { expect, test } from "bun:test";
import { cleaned, cleanText, shortened } from "./clean-text.ts";

test.each([
  ["colours", "\u001b[1;31mred\u001b[0m", "red"],
  ["a title", "\u001b]0;a title\u0007text", "text"],
  ["a link", "\u001b]8;;http://x\u001b\\here\u001b]8;;\u001b\\", "here"],
  ["a device's string", "\u001bPq#0\u001b\\after", "after"],
  ["a clipboard's theft, not ended", "\u001b]52;c;ZXZpbA==", "52;c;ZXZpbA=="],
  ["cursor moves", "\u001b[2J\u001b[H\u001b7top\u001b8", "top"],
  ["a bar of progress", "1%\r2%\r\n", "1%\n2%\n"],
  ["bells, NUL and C1", "a\u0007\u0000\u009bb", "ab"],
  ["tabs and lines", "a\tb\nc", "a\tb\nc"],
  ["text that hides its direction", "a\u202eb\u2066c", "abc"],
  ["other alphabets", "日本 é 🦀", "日本 é 🦀"],
])("%s", (_, text, expected) => {
  expect(cleaned(text)).toBe(expected);
});

test("bytes that are not UTF-8 are told as such", () => {
  expect(cleanText(new Uint8Array([0x61, 0xff, 0xc3, 0x62]))).toBe("a\ufffd\ufffdb");
});

test("a long text is cut between characters", () => {
  expect(shortened("a\nb", 10)).toBe("a b");
  expect(shortened("ab🦀cd", 3)).toBe("ab…");
  expect(shortened("ab🦀cd", 4)).toBe("ab🦀…");
});

test("many beginnings of escapes take no longer than they are long", () => {
  const before = performance.now();
  cleaned("\u001b]".repeat(500_000));
  cleaned(`\u001bP${"x".repeat(500_000)}`.repeat(2));
  // A second look from each beginning would be hours.
  expect(performance.now() - before).toBeLessThan(10_000);
});
