import { expect, test } from "bun:test";
import type { EndCause } from "@holdfast/protocol";
import { FakeTimers } from "../terminal/fake-timers.ts";
import { Deadman, type Policy } from "./deadman.ts";

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
const policy: Policy = { lifetimeSeconds: 1800, maxLifetimeSeconds: null, orphanLimitSeconds: 86_400 };

/** What a test says of the sandbox: since when it is idle. */
function setUp(options: { policy?: Partial<Policy>; idleSince?: () => number } = {}) {
  const timers = new FakeTimers();
  const ends: { cause: EndCause; atMs: number }[] = [];
  let judged = 0;
  let fence = 1;
  const idle = (lifetimeMs: number) => timers.elapsed() - (options.idleSince ?? (() => 0))() >= lifetimeMs;
  const deadman = new Deadman({
    timers,
    fence: () => fence,
    activity: {
      seemsIdle: ({ lifetimeMs }) => idle(lifetimeMs),
      judge: ({ lifetimeMs }) => {
        judged++;
        return idle(lifetimeMs) ? { state: "idle" } : { state: "busy", because: [], idleForMs: 0 };
      },
    },
    onEnd: (cause) => ends.push({ cause, atMs: timers.elapsed() }),
  });
  const admit = (changes: Partial<Policy> = {}) =>
    deadman.admitted({ ...policy, ...options.policy, ...changes });
  admit();
  const replaced = () => {
    fence++;
  };
  return { timers, deadman, ends, admit, replaced, judged: () => judged };
}

const busy = { idleSince: () => Number.POSITIVE_INFINITY };

test.each<[string, Parameters<typeof setUp>[0], { cause: EndCause; atMs: number }]>([
  ["idle, twice the lifetime", {}, { cause: "idle_without_server", atMs: HOUR }],
  [
    "idle, a short lifetime",
    { policy: { lifetimeSeconds: 5 } },
    { cause: "idle_without_server", atMs: 10 * MINUTE },
  ],
  ["busy", busy, { cause: "orphan_limit", atMs: 24 * HOUR }],
  [
    "busy until the second hour",
    { idleSince: () => 2 * HOUR },
    { cause: "idle_without_server", atMs: 2.5 * HOUR },
  ],
  [
    "its greatest age",
    { ...busy, policy: { maxLifetimeSeconds: 90 } },
    { cause: "max_lifetime", atMs: 1.5 * MINUTE },
  ],
  ["shorter than a tick", { policy: { maxLifetimeSeconds: 2 } }, { cause: "max_lifetime", atMs: 2_000 }],
])("scenario 18: with the server gone for ever it ends: %s", (_, options, end) => {
  const { timers, ends } = setUp(options);
  timers.advance(end.atMs - 1);
  expect(ends).toEqual([]);
  timers.advance(48 * HOUR);
  expect([ends, timers.pending]).toEqual([[end], 0]);
});

test("a server that comes back sets the count to zero: by a word, an admission, or a watch that it holds", () => {
  const { timers, deadman, ends, admit } = setUp();
  const nearlyOver = () => timers.advance(HOUR - 1);
  nearlyOver();
  deadman.heard();
  nearlyOver();
  admit();
  nearlyOver();
  const unwatch = deadman.watched();
  timers.advance(500 * HOUR);
  unwatch();
  unwatch();
  nearlyOver();
  expect(ends).toEqual([]);
  timers.advance(1);
  expect(ends).toMatchObject([{ cause: "idle_without_server" }]);
});

test("two servers watch: one is enough; but not one that was replaced", () => {
  const { timers, deadman, ends, replaced } = setUp();
  const first = deadman.watched();
  const second = deadman.watched();
  first();
  timers.advance(100 * HOUR);
  expect(ends).toEqual([]);
  replaced(); // by one that says a word and goes away; the second's connection is still open, as after SIGSTOP
  deadman.heard();
  timers.advance(HOUR);
  expect(ends).toMatchObject([{ cause: "idle_without_server" }]);
  second();
});

test("in contact, only the greatest age ends it", () => {
  const { timers, deadman, ends } = setUp({ policy: { maxLifetimeSeconds: 7200 } });
  deadman.watched();
  timers.advance(2 * HOUR);
  expect(ends).toEqual([{ cause: "max_lifetime", atMs: 2 * HOUR }]);
});

test("a sleep of the machine is one tick, however long", () => {
  const { timers, ends } = setUp({ policy: { maxLifetimeSeconds: 7200 } });
  timers.advance(30 * MINUTE);
  for (let night = 0; night < 10; night++) timers.sleep(12 * HOUR);
  expect(ends).toEqual([]);
  // Ten nights were ten ticks of five seconds.
  timers.advance(30 * MINUTE - 50_000 - 1);
  expect(ends).toEqual([]);
  timers.advance(1);
  expect(ends).toMatchObject([{ cause: "idle_without_server" }]);
});

test("the newest policy counts, and saying it again and again does not keep it young", () => {
  const { timers, ends, admit } = setUp({ policy: { maxLifetimeSeconds: 60 } });
  admit({ maxLifetimeSeconds: null });
  timers.advance(5 * MINUTE);
  expect(ends).toEqual([]);
  for (let i = 0; i < 99; i++) {
    admit({ maxLifetimeSeconds: 400 });
    timers.advance(1_000);
  }
  expect(ends).toEqual([]);
  timers.advance(1_000);
  expect(ends).toEqual([{ cause: "max_lifetime", atMs: 400_000 }]);
});

test("while it is busy its processes are not looked at every tick", () => {
  const { timers, judged, ends } = setUp(busy);
  timers.advance(20 * HOUR);
  expect([judged(), ends]).toEqual([0, []]);
});

test("closed, it does nothing any more", () => {
  const { timers, deadman, ends } = setUp();
  deadman.close();
  deadman.close();
  timers.advance(100 * HOUR);
  expect([ends, timers.pending]).toEqual([[], 0]);
});
