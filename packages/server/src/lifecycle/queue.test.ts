import { expect, test } from "bun:test";
import { HoldfastError } from "@holdfast/protocol";
import { Bell } from "./bell.ts";
import { HandClock, settled } from "./hand-clock.ts";
import { Queue } from "./queue.ts";

const full = () => new HoldfastError("capacity_exhausted", "all slots are taken");

function aHotel(rooms: number) {
  const clock = new HandClock();
  const bell = new Bell();
  const queue = new Queue({ clock, bell, makeRoom: async () => false });
  const guests: string[] = [];
  let asked = 0;
  const enter = (name: string, ms: number) =>
    queue
      .run(ms, async () => {
        asked++;
        if (guests.length >= rooms) throw full();
        guests.push(name);
        return name;
      })
      .catch(({ code }) => `${name}: ${code}`);
  const leave = () => {
    guests.shift();
    bell.ring("somebody");
  };
  return { clock, bell, queue, guests, enter, leave, asked: () => asked };
}

test("whoever does not want to wait hears at once", async () => {
  const { enter } = aHotel(1);
  expect([await enter("a", 0), await enter("b", 0)]).toEqual(["a", "b: capacity_exhausted"]);
});

test("those who wait come in as they came, one for each place that becomes free", async () => {
  const { enter, leave, queue } = aHotel(1);
  await enter("a", 0);
  const order: string[] = [];
  const waiting = ["b", "c", "d"].map((name) => enter(name, 60_000).then((who) => order.push(who)));
  await settled();
  expect(queue.waiting).toBe(3);
  for (const expected of [["b"], ["b", "c"], ["b", "c", "d"]]) {
    leave();
    await settled();
    expect(order).toEqual(expected);
  }
  await Promise.all(waiting);
  expect(queue.waiting).toBe(0);
});

test("L3: each is answered by its own deadline, and one that gives up holds up nobody", async () => {
  const { enter, leave, clock, queue } = aHotel(1);
  await enter("a", 0);
  const [short, long] = [enter("short", 2_000), enter("long", 60_000)];
  await clock.pass(2_000);
  expect(await short).toBe("short: capacity_exhausted");
  leave();
  await settled();
  expect([await long, queue.waiting]).toEqual(["long", 0]);
});

test("only the first in line asks, and it looks again when nothing rang", async () => {
  const { enter, clock, guests, asked } = aHotel(1);
  await enter("a", 0);
  const waiting = Array.from({ length: 20 }, (_, i) => enter(`w${i}`, 10_000));
  await clock.pass(5_000);
  expect(asked()).toBeLessThan(30);
  guests.pop();
  await clock.pass(1_000);
  expect(guests).toHaveLength(1);
  await clock.pass(10_000);
  expect((await Promise.all(waiting)).filter((who) => !who.includes(":"))).toHaveLength(1);
});

test("what is not for want of room is not waited for", async () => {
  const { queue } = aHotel(1);
  const broken = queue.run(60_000, async () => Promise.reject(new HoldfastError("capacity_unknown", "df")));
  expect(await broken.catch(({ code }) => code)).toBe("capacity_unknown");
});
