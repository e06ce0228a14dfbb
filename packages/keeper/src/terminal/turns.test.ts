import { expect, test } from "bun:test";
import { FakeTimers } from "./fake-timers.ts";
import { Turns } from "./turns.ts";

const FLOOD = 64 * 1024;

function setUp(count: number) {
  const timers = new FakeTimers();
  const turns = new Turns(timers);
  const held = new Set<number>();
  const seats = Array.from({ length: count }, (_, i) =>
    turns.join({ pause: () => held.add(i), resume: () => held.delete(i) }),
  );
  return { timers, held, seats, take: (i: number, bytes: number) => seats[i]?.took(bytes) };
}

test("two floods run, the third waits, and turns go round", () => {
  const { held, take } = setUp(4);
  for (const i of [0, 1, 2, 3]) take(i, FLOOD);
  expect([...held]).toEqual([2, 3]);
  take(0, FLOOD);
  expect([...held]).toEqual([3, 0]);
  take(1, FLOOD);
  expect([...held]).toEqual([0, 1]);
});

test("what a held terminal had on its way is not counted", () => {
  const { held, take } = setUp(3);
  for (const i of [0, 1, 2]) take(i, FLOOD);
  take(2, 10 * FLOOD);
  expect([...held]).toEqual([2]);
});

test("a talking terminal is never held, whatever the others do", () => {
  const { timers, held, take } = setUp(3);
  for (let i = 0; i < 100; i++) {
    take(0, FLOOD);
    take(1, FLOOD);
    take(2, 1000);
    timers.advance(10);
  }
  expect([...held]).toEqual([]);
});

test("an unused turn and a left seat go to the next", () => {
  const { timers, held, seats, take } = setUp(4);
  for (const i of [0, 1, 2, 3]) take(i, FLOOD);
  timers.advance(50);
  take(1, 10);
  timers.advance(50);
  expect([...held]).toEqual([3]);
  seats[1]?.leave();
  expect([...held]).toEqual([]);
  for (const seat of seats) seat.leave();
  expect(timers.pending).toBe(0);
});
