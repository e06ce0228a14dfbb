import { expect, test } from "bun:test";
import { TERMINAL_SUBPROTOCOL, terminalSubprotocols, tokenOfSubprotocols } from "./terminal-socket.ts";

test.each(["hf_abc123", "with spaces, commas and = signs", "ünïcode"])("the token %s travels", (token) => {
  const offered = terminalSubprotocols(token);
  expect(offered[0]).toBe(TERMINAL_SUBPROTOCOL);
  // What a WebSocket accepts as a subprotocol's name.
  for (const name of offered) expect(name).toMatch(/^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/);
  expect(tokenOfSubprotocols(offered.join(", "))).toBe(token);
});

test.each([
  [null],
  [""],
  [TERMINAL_SUBPROTOCOL],
  ["holdfast.bearer."],
  ["holdfast.bearer.xyz"],
  ["holdfast.bearer.abc"],
])("no token in %p", (header) => {
  expect(tokenOfSubprotocols(header)).toBeUndefined();
});
