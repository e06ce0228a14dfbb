import { afterEach, beforeEach, expect, jest, test } from "bun:test";
import { type BrokenOff, readBody } from "./read-body.ts";

beforeEach(() => void jest.useFakeTimers());
afterEach(() => void jest.useRealTimers());

/** A body whose next piece comes when it is said so, and who reads it. */
function opened() {
  let to: ReadableStreamDefaultController<Uint8Array> | undefined;
  const left: unknown[] = [];
  const body = new ReadableStream<Uint8Array>({
    start: (controller) => {
      to = controller;
    },
    cancel: (reason) => void left.push(reason),
  });
  const ended: BrokenOff = {};
  const pieces = readBody({ response: new Response(body), signal: undefined, url: "http://there", ended });
  return { pieces, ended, left, comes: (text: string) => to?.enqueue(new TextEncoder().encode(text)) };
}

test("a stream from which nothing is heard for 45 s is broken", async () => {
  const { pieces, ended, left, comes } = opened();
  for (const text of ["a", "b", "c"]) {
    const next = pieces.next();
    jest.advanceTimersByTime(44_000);
    comes(text);
    expect(new TextDecoder().decode((await next).value ?? undefined)).toBe(text);
  }
  const next = pieces.next();
  jest.advanceTimersByTime(46_000);
  jest.advanceTimersByTime(46_000);
  expect((await next).done).toBe(true);
  expect(ended.error).toMatchObject({
    code: "unavailable",
    cause: { message: "nothing was heard for 45 s" },
  });
  expect(left.length).toBe(1);
});

test("a reader that is busy for long with what it got is no silence", async () => {
  const { pieces, ended, comes } = opened();
  comes("a");
  comes("b");
  await pieces.next();
  jest.advanceTimersByTime(200_000);
  expect((await pieces.next()).done).toBe(false);
  expect(ended).toEqual({});
  await pieces.return(undefined);
});
