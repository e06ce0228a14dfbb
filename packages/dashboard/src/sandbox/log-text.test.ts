import { expect, test } from "bun:test";
import { withoutColours } from "./log-text.ts";

test.each([
  ["\u001b[1;31mred\u001b[0m\r\n", "red\n"],
  ["\u001b]0;a title\u0007text", "text"],
  ["\u001b]8;;http://x\u001b\\link\u001b]8;;\u001b\\", "link"],
  ["<script>[0m", "<script>[0m"],
])("%j is shown as %j", (text, shown) => expect(withoutColours(text)).toBe(shown));
