import { expect, test } from "bun:test";
import { ScreenModes } from "./screen-modes.ts";

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
  const whole = new ScreenModes();
  whole.learn(bytes);
  expect(whole.restore).toBe(restore);
  const byByte = new ScreenModes();
  for (const byte of bytes) byByte.learn(Uint8Array.of(byte));
  expect(byByte.restore).toBe(restore);
});

const undos: [name: string, output: string, undo: string][] = [
  ["nothing to undo", "text\x1b[?25l\x1b[?25h", ""],
  [
    "an editor with a mouse",
    "\x1b[?1049h\x1b[?1000h\x1b[?25l\x1b=\x1b[1;24r",
    "\x1b[?25h\x1b[?1000l\x1b[?1049l\x1b>\x1b7\x1b[r\x1b8",
  ],
];

test.each(undos)("undo: %s", (_, output, undo) => {
  const modes = new ScreenModes();
  modes.learn(new TextEncoder().encode(output));
  expect(modes.undo).toBe(undo);
  modes.learn(new TextEncoder().encode(undo.replace("\x1b7\x1b[r\x1b8", "")));
  expect(modes.undo.replace("\x1b7\x1b[r\x1b8", "")).toBe("");
});
