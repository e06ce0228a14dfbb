import { expect, test } from "bun:test";
import { FAST_ATTEMPTS, probeMs, recheckMs, retryMs } from "./backoff.ts";

const seconds = (ms: number) => ms / 1000;
const middle = 0.5;

test("the waits between attempts to stop grow, and the last one repeats", () => {
  const waits = [0, 1, 2, 3, 4, 5, 6, 99].map((attempts) => seconds(retryMs(attempts, middle)));
  expect(waits).toEqual([2, 2, 5, 15, 30, 60, 60, 60]);
});

test("a quarantined one is looked at ever more slowly, and for ever", () => {
  const waits = [0, 1, 2, 3, 4, 5, 6, 999].map((more) => seconds(recheckMs(FAST_ATTEMPTS + more, middle)));
  expect(waits).toEqual([60, 120, 300, 600, 1_800, 3_600, 3_600, 3_600]);
});

test("a backend that is away is probed within a minute", () => {
  expect([1, 2, 3, 4, 5, 6, 7, 8].map((n) => seconds(probeMs(n, middle)))).toEqual([
    1, 2, 4, 8, 16, 32, 60, 60,
  ]);
});

test("scenario 28: 500 waits of the same step are spread over two fifths of it", () => {
  const waits = Array.from({ length: 500 }, (_, i) => retryMs(5, i / 500));
  expect([Math.min(...waits), Math.max(...waits)]).toEqual([48_000, 71_952]);
  const inOneSecond = Map.groupBy(waits, (ms) => Math.floor(ms / 1000));
  expect(Math.max(...[...inOneSecond.values()].map((some) => some.length))).toBeLessThan(25);
});
