import type { ErrorBody } from "./errors.ts";
import type { TerminalExit } from "./terminal.ts";

/**
 * A terminal's WebSocket. Binary frames are bytes and nothing else: to the viewer what the program wrote, to the
 * keeper what was typed. Text frames are the JSON below. There is no zod here, so that a page can have it for little.
 */
export type ToViewer =
  /** First of all. The next binary byte has this offset in the PTY's output. */
  | {
      type: "ready";
      terminalId: string;
      ptyId: string;
      offset: number;
      cols: number;
      rows: number;
      readonly: boolean;
    }
  /** The size is now this, whoever asked for it. */
  | { type: "resize"; cols: number; rows: number }
  /**
   * Bytes from `from` up to, not including, `to` are no longer there. `restore` is what a screen needs to be told
   * before the rest: the modes that were set in the lost part (alternate screen, hidden cursor, mouse, …).
   */
  | { type: "truncated"; from: number; to: number; restore: string }
  /** `full`: the program does not read what is typed; stop sending until `open`. */
  | { type: "input"; state: "full" | "open" }
  /** Last of all, after the last byte. */
  | { type: "exit"; exit: TerminalExit }
  | { type: "error"; error: ErrorBody["error"] };

export type FromViewer =
  | { type: "resize"; cols: number; rows: number }
  /** Everything before `offset` was taken in. Only from a viewer that connected with a `window`. */
  | { type: "ack"; offset: number };

/** Why the keeper closed a viewer's socket, where it was not the viewer's wish. */
export const terminalCloseCode = {
  /** The program ended, and everything was sent: do not come back. */
  exited: 4000,
  /** An `error` frame told why: do not come back. */
  refused: 4001,
  /** The viewer took nothing, or answered nothing, for too long: come back with `since`. */
  stalled: 4002,
  /** The terminal was destroyed. */
  destroyed: 4003,
} as const;

/** The subprotocol of a terminal's socket; the server's answer names it alone. */
export const TERMINAL_SUBPROTOCOL = "holdfast.terminal.v1";

/** What a request says about its sender in headers. */
export interface Carried {
  bearer?: string | undefined;
  /** The open turn that the call is a part of. */
  turn?: string | undefined;
  /** The token of the claim that the caller holds. */
  claim?: string | undefined;
}

/**
 * A page cannot set a header on a WebSocket, so what a header would carry travels as further subprotocols: not in the
 * URL, which ends up in logs and histories. In hexadecimal, because a subprotocol's name is a bare HTTP token.
 */
export function terminalSubprotocols(carried: Carried): string[] {
  const more = Object.entries(carried).flatMap(([name, value]: [string, string | undefined]) =>
    value === undefined ? [] : [`holdfast.${name}.${toHex(value)}`],
  );
  return [TERMINAL_SUBPROTOCOL, ...more];
}

/** The way back, from the request's `Sec-WebSocket-Protocol` header; `undefined` if it does not carry that. */
export function carriedBySubprotocols(header: string | null, name: keyof Carried): string | undefined {
  if (header === null) return undefined;
  const prefix = `holdfast.${name}.`;
  const offered = header.split(",").map((one) => one.trim());
  const hex = offered.find((one) => one.startsWith(prefix))?.slice(prefix.length);
  return hex === undefined || !/^([0-9a-f]{2})+$/.test(hex) ? undefined : fromHex(hex);
}

function toHex(text: string): string {
  return Array.from(new TextEncoder().encode(text), (byte) => byte.toString(16).padStart(2, "0")).join("");
}

function fromHex(hex: string): string {
  const bytes = Uint8Array.from(hex.match(/../g) ?? [], (pair) => Number.parseInt(pair, 16));
  return new TextDecoder().decode(bytes);
}
