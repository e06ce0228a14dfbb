import { expect, test } from "bun:test";
import { SIDE_BY_SIDE, sideBySide } from "./side-by-side.ts";

const numbers = Array.from({ length: 100 }, (_, i) => i);

test("so many at a time and no more, and what comes of each in their order", async () => {
  let running = 0;
  let most = 0;
  const doubled = await sideBySide(numbers, async (one) => {
    running += 1;
    most = Math.max(most, running);
    // The later ones of those that run together end first.
    for (let turn = one % SIDE_BY_SIDE; turn < SIDE_BY_SIDE; turn++) await Promise.resolve();
    running -= 1;
    return one * 2;
  });
  expect([doubled, most, await sideBySide([], async () => 1)]).toEqual([
    numbers.map((one) => one * 2),
    SIDE_BY_SIDE,
    [],
  ]);
});

test("after a failure none is begun, and all that were begun have ended", async () => {
  const begun: number[] = [];
  let ended = 0;
  const work = async (one: number) => {
    begun.push(one);
    await Promise.resolve();
    if (one === 3) throw new Error("the fourth fails");
    for (let turn = 0; turn < 20; turn++) await Promise.resolve();
    ended += 1;
  };
  await expect(sideBySide(numbers, work)).rejects.toThrow("the fourth fails");
  expect([begun, ended]).toEqual([numbers.slice(0, SIDE_BY_SIDE), SIDE_BY_SIDE - 1]);
});
