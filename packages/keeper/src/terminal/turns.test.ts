import { expect, test } from "bun:test";
import { FakeTimers } from "./fake-timers.ts";
import { Turns } from "./turns.ts";

const FLOOD = 64 * 1024;
const BREATH_MS = 10;

function setUp(count: number) {
  const timers = new FakeTimers();
  const turns = new Turns(timers);
  const held = new Set<number>();
  const seats = Array.from({ length: count }, (_, i) =>
    turns.join({ pause: () => held.add(i), resume: () => held.delete(i) }),
  );
  return { timers, held, seats, take: (i: number, bytes: number) => seats[i]?.took(bytes) };
}

test("a flood alone is not held; once there are several they wait, and turns go round, one a breath", () => {
  const { timers, held, take } = setUp(3);
  for (let i = 0; i < 10; i++) take(0, FLOOD);
  expect([...held]).toEqual([]);
  for (const i of [1, 2, 0]) take(i, FLOOD);
  expect([...held]).toEqual([1, 2, 0]);
  timers.advance(BREATH_MS);
  expect([...held]).toEqual([2, 0]);
  take(1, FLOOD);
  expect([...held]).toEqual([2, 0, 1]);
  timers.advance(BREATH_MS);
  expect([...held]).toEqual([0, 1]);
});

test("the next flood does not wait for one that is over", () => {
  const { timers, held, take } = setUp(2);
  take(0, FLOOD);
  timers.advance(50);
  take(1, FLOOD);
  expect([...held]).toEqual([]);
  expect(timers.pending).toBe(0);
});

test("while one uses its turn the others wait, however long that takes", () => {
  const { timers, held, take } = setUp(2);
  for (const i of [0, 1]) take(i, FLOOD);
  for (let i = 0; i < 50; i++) {
    timers.advance(BREATH_MS);
    take(0, 1000);
  }
  expect([...held]).toEqual([1]);
});

test("what a held terminal had on its way is not counted", () => {
  const { timers, held, take } = setUp(2);
  for (const i of [1, 0]) take(i, FLOOD);
  expect([...held]).toEqual([0]);
  take(0, 10 * FLOOD);
  timers.advance(BREATH_MS * 6);
  take(0, FLOOD - 1);
  expect([...held]).toEqual([]);
});

test("a talking terminal is never held, whatever the others do", () => {
  const { timers, held, take } = setUp(2);
  for (let i = 0; i < 100; i++) {
    take(0, FLOOD);
    take(1, 1000);
    timers.advance(BREATH_MS);
    expect([...held]).toEqual([]);
  }
});

test("an unused turn and a left seat go to the next, and no timer is left", () => {
  const { timers, held, seats, take } = setUp(3);
  for (const i of [0, 1, 2]) take(i, FLOOD);
  timers.advance(BREATH_MS * 6);
  expect([...held]).toEqual([2]);
  seats[1]?.leave();
  timers.advance(BREATH_MS);
  expect([...held]).toEqual([]);
  for (const seat of seats) seat.leave();
  expect(timers.pending).toBe(0);
});
