import { expect, test } from "bun:test";
import { Modes } from "./modes.ts";

const cases: [name: string, output: string, restore: string][] = [
  ["plain text", "hello\r\n", ""],
  ["an editor is open", "\x1b[?1049h\x1b[?25l\x1b[1;24r text", "\x1b[?1049h\x1b[?25l\x1b[1;24r"],
  ["an editor was open", "\x1b[?1049h\x1b[?25l text \x1b[?25h\x1b[?1049l", ""],
  ["several modes in one", "\x1b[?1000;1006h\x1b=", "\x1b[?1000h\x1b[?1006h\x1b="],
  ["colours and cursor moves pass", "\x1b[1;31mred\x1b[0m\x1b[2J\x1b[H\x1b(B", ""],
  ["a full reset", "\x1b[?1049h\x1bc", ""],
  ["a cut sequence", "ab\x1b[?10", "\x1b[?10"],
  ["a sequence that an escape breaks off", "\x1b[?10\x1b[?2004h", "\x1b[?2004h"],
  ["a sequence that never ends", `\x1b[${"1;".repeat(100)}`, ""],
];

test.each(cases)("%s", (_, output, restore) => {
  const bytes = new TextEncoder().encode(output);
  const whole = new Modes();
  whole.learn(bytes);
  expect(whole.restore).toBe(restore);
  const byByte = new Modes();
  for (const byte of bytes) byByte.learn(Uint8Array.of(byte));
  expect(byByte.restore).toBe(restore);
});
