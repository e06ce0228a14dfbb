import { expect, test } from "bun:test";
import type { LogEvent } from "holdfast";
import { bytesOf, endOf, readPage } from "./log-page.ts";

const text = (bytes: Uint8Array) => new TextDecoder().decode(bytes);
const bytes = (value: string) => new TextEncoder().encode(value);

async function* log(...events: LogEvent[]): AsyncGenerator<LogEvent> {
  yield* events;
}

const out = (offset: number, value: string): LogEvent => ({ type: "stdout", offset, bytes: bytes(value) });
const err = (offset: number, value: string): LogEvent => ({ type: "stderr", offset, bytes: bytes(value) });

test("a page is cut between characters, and the next one goes on there", async () => {
  const page = await readPage(log(out(0, "aé€"), out(6, "more")), { since: 0, maxBytes: 5 });
  expect({ ...page, pieces: text(bytesOf(page)) }).toEqual({
    pieces: "aé",
    nextOffset: 3,
    droppedBytes: 0,
    isLast: false,
  });
});

test("one that is filled exactly is not cut, and says that there is more only if there is", async () => {
  expect(await readPage(log(out(0, "abc")), { since: 0, maxBytes: 3 })).toMatchObject({ isLast: true });
  const full = await readPage(log(out(0, "abc"), err(3, "d")), { since: 0, maxBytes: 3 });
  expect(full).toMatchObject({ nextOffset: 3, isLast: false });
});

test("streams can be had apart, and what the log dropped is counted", async () => {
  const events = log({ type: "truncated", from: 2, to: 10 }, out(10, "a"), err(11, "b"), out(12, "c"));
  const page = await readPage(events, { since: 2, maxBytes: 100 });
  expect(page).toMatchObject({ nextOffset: 13, droppedBytes: 8 });
  expect([bytesOf(page), bytesOf(page, "stdout"), bytesOf(page, "stderr")].map(text)).toEqual([
    "abc",
    "ac",
    "b",
  ]);
});

test.each([
  ["aé€", 100, "aé€"],
  ["aé€", 5, "é€"],
  ["aé€", 4, "€"],
  ["aé€", 2, ""],
  ["aé€", 0, ""],
])("the end of %s in %i bytes", (value, maxBytes, expected) => {
  expect(text(endOf(bytes(value), maxBytes))).toBe(expected);
});
