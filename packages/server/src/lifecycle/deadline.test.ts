import { expect, test } from "bun:test";
import { within } from "./deadline.ts";
import { HandClock } from "./hand-clock.ts";

test("what answers in time is passed on, also its failure", async () => {
  const clock = new HandClock();
  expect(await within(clock, { ms: 1 }, async () => "done")).toBe("done");
  const failed = within(clock, { ms: 1 }, async () => Promise.reject(new Error("no")));
  expect(await failed.catch(String)).toBe("Error: no");
});

test("what does not answer fails in time, whether it listens or not, and nobody knows if it was done", async () => {
  const clock = new HandClock();
  let given: AbortSignal | undefined;
  const hanging = within(clock, { ms: 5_000 }, (signal) => {
    given = signal;
    return new Promise(() => {});
  }).catch((error) => error);
  await clock.pass(4_999);
  expect(given?.aborted).toBe(false);
  await clock.pass(1);
  expect(await hanging).toMatchObject({ code: "unavailable", started: "unknown" });
  expect(given?.aborted).toBe(true);
});

test("a server that closes tells the work", async () => {
  const closing = new AbortController();
  const aborted = within(new HandClock(), { ms: 5_000, closing: closing.signal }, async (signal) => {
    closing.abort();
    return signal.aborted;
  });
  expect(await aborted).toBe(true);
});
