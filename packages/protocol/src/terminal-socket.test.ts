import { expect, test } from "bun:test";
import { carriedBySubprotocols, TERMINAL_SUBPROTOCOL, terminalSubprotocols } from "./terminal-socket.ts";

test.each(["hf_abc123", "with spaces, commas and = signs", "ünïcode"])("the token %s travels", (token) => {
  const offered = terminalSubprotocols({ bearer: token, turn: undefined, claim: "clm" });
  expect(offered[0]).toBe(TERMINAL_SUBPROTOCOL);
  // What a WebSocket accepts as a subprotocol's name.
  for (const name of offered) expect(name).toMatch(/^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/);
  const header = offered.join(", ");
  expect(carriedBySubprotocols(header, "bearer")).toBe(token);
  expect(carriedBySubprotocols(header, "turn")).toBeUndefined();
  expect(carriedBySubprotocols(header, "claim")).toBe("clm");
});

test.each([
  [null],
  [""],
  [TERMINAL_SUBPROTOCOL],
  ["holdfast.bearer."],
  ["holdfast.bearer.xyz"],
  ["holdfast.bearer.abc"],
])("no token in %p", (header) => {
  expect(carriedBySubprotocols(header, "bearer")).toBeUndefined();
});
