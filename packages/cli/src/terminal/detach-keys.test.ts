import { expect, test } from "bun:test";
import { DetachKeys } from "./detach-keys.ts";

const cases: [name: string, typed: string[], passed: string, detached: boolean][] = [
  ["plain typing", ["ls", "\r"], "ls\r", false],
  ["the sequence at once", ["ls\r\x10\x11rest"], "ls\r", true],
  ["the sequence key by key", ["ab", "\x10", "\x11"], "ab", true],
  ["Ctrl-P and another key", ["\x10", "a"], "\x10a", false],
  ["Ctrl-P twice, then Ctrl-Q", ["\x10", "\x10", "\x11"], "\x10", true],
  ["Ctrl-Q alone", ["\x11"], "\x11", false],
  ["Ctrl-P and a moment", ["\x10", "wait", "\x11"], "\x10\x11", false],
  ["Ctrl-P in the middle", ["a\x10b"], "a\x10b", false],
];

test.each(cases)("%s", (_, typed, expected, wanted) => {
  let passed = "";
  let detached = false;
  let due: (() => void) | undefined;
  const keys = new DetachKeys({
    send: (bytes) => {
      passed += new TextDecoder().decode(bytes);
    },
    detach: () => {
      detached = true;
    },
    after: (_ms, action) => {
      due = action;
      return () => {
        due = undefined;
      };
    },
  });
  for (const text of typed) {
    if (text === "wait") due?.();
    else keys.push(new TextEncoder().encode(text));
  }
  expect({ passed, detached }).toEqual({ passed: expected, detached: wanted });
});
