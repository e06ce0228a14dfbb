import { expect, test } from "bun:test";
import { meterOf } from "./body-meter.ts";
import type { Framing } from "./framing.ts";

const chunked = { kind: "chunked" } as const;

test.each<[Framing, string, string]>([
  [{ kind: "none" }, "", "GET /"],
  [{ kind: "length", bytes: 5 }, "hello", "GET /"],
  [{ kind: "close" }, "all of it", ""],
  [chunked, "0\r\n\r\n", "GET /"],
  [chunked, "5\r\nhello\r\n0\r\n\r\n", "0\r\n\r\n"],
  [chunked, "000A;a=b ; c\r\n0123456789\r\n1\r\n\n\r\n0\r\nA: b\r\nC: d\r\n\r\n", "\r\n"],
])("%#: a body ends where it ends, however it is cut into pieces", (framing, body, next) => {
  const bytes = Buffer.from(body + next);
  for (let cut = 0; cut <= bytes.length; cut++) {
    const meter = meterOf(framing);
    const first = meter.take(bytes.subarray(0, cut));
    const second = first < cut ? 0 : meter.take(bytes.subarray(cut));
    expect([cut, first + second]).toEqual([cut, body.length]);
    expect(meter.isDone).toBe(framing.kind !== "close");
  }
});

test.each([
  "5\r\nhelloo\r\n",
  "5\r\nhello\n",
  "5\nhello\r\n",
  "5\rhello\r\n",
  "5\r\r\n",
  "\r\n",
  "0x5\r\n",
  "+5\r\n",
  " 5\r\n",
  "5 \r\n",
  "5;\x00\r\n",
  "fffffffffffff\r\n",
  `5;${"x".repeat(5000)}`,
  "0\r\nA: b\nC: d\r\n\r\n",
  `0\r\n${"A: b\r\n".repeat(100)}\r\n`,
])("%#: chunks that others could read in another way are refused", (body) => {
  expect(() => meterOf(chunked).take(Buffer.from(body, "latin1"))).toThrow();
});
