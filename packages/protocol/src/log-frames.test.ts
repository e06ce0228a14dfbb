import { expect, test } from "bun:test";
import { encodeFrame, FrameDecoder, type LogEvent } from "./log-frames.ts";

const bytes = (text: string): Uint8Array => new TextEncoder().encode(text);

const events: LogEvent[] = [
  { type: "truncated", from: 0, to: 7 },
  { type: "stdout", offset: 7, bytes: bytes("a\0b") },
  { type: "stderr", offset: 10, bytes: bytes("é") },
  {
    type: "exit",
    offset: 12,
    exitCode: 143,
    signal: "SIGTERM",
    timedOut: false,
    cancelled: true,
    oomKilled: false,
  },
  { type: "lost", offset: 12, reason: "keeper_lost" },
];

test("chunks cut anywhere give the same events", () => {
  const whole = Buffer.concat(events.map(encodeFrame));
  for (let size = 1; size <= whole.length; size += 3) {
    const decoder = new FrameDecoder();
    const seen: LogEvent[] = [];
    for (let at = 0; at < whole.length; at += size) {
      seen.push(...decoder.push(new Uint8Array(whole.subarray(at, at + size))));
    }
    expect(joined(seen)).toEqual(events);
  }
});

/** Pieces of output that one frame was cut into, together again. */
function joined(pieces: LogEvent[]): LogEvent[] {
  const whole: LogEvent[] = [];
  for (const piece of pieces) {
    const last = whole.at(-1);
    if ("bytes" in piece && last?.type === piece.type && "bytes" in last) {
      expect(piece.offset).toBe(last.offset + last.bytes.length);
      last.bytes = Uint8Array.from([...last.bytes, ...piece.bytes]);
    } else whole.push({ ...piece });
  }
  return whole;
}

test("an exit frame without its facts is refused", () => {
  const frame = encodeFrame({ type: "lost", offset: 1, reason: "x" });
  frame[0] = 4;
  expect(() => [...new FrameDecoder().push(frame)]).toThrow("wrong facts");
});
