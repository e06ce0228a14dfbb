import { expect, test } from "bun:test";
import { TAGS } from "./oom-score.ts";
import { TagPool } from "./tree-tags.ts";

/** A pool whose looks see what a test says, one set after the other, the last one again and again. */
function poolThatSees(...looks: number[][]) {
  let seen = 0;
  let now = 0;
  const pool = new TagPool({
    carried: () => {
      now += 1;
      return new Set(looks[Math.min(seen++, looks.length - 1)]);
    },
    now: () => now,
  });
  const takeAll = () => Array.from({ length: TAGS }, (_, i) => pool.take(`run-${i}`));
  return { pool, takeAll, looks: () => seen, pass: (ms: number) => (now += ms) };
}

test("each run has its own tag, and beyond the last there are none", () => {
  const { pool, takeAll } = poolThatSees([]);
  const tags = takeAll();
  expect(new Set(tags).size).toBe(TAGS);
  expect(tags.map((tag) => pool.ownerOf(tag))).toEqual(tags.map((_, i) => `run-${i}`));
  expect(pool.take("one too many")).toBeUndefined();
  expect(pool.ownerOf(0)).toBeUndefined();
});

test.each([
  ["a run that goes on keeps its tag", { ended: [], looks: [[]], free: [] }],
  ["that of an ended run which nobody carries is free", { ended: [3, 5], looks: [[]], free: [3, 5] }],
  ["what is seen in the first look only is not", { ended: [3, 5], looks: [[3], []], free: [5] }],
  ["what is seen in the second look only is not", { ended: [3, 5], looks: [[], [5]], free: [3] }],
])("%s", (_, { ended, looks, free }) => {
  const { pool, takeAll } = poolThatSees(...looks);
  takeAll();
  for (const tag of ended) pool.ended(tag);
  const taken = [1, 2, 3].map((n) => pool.take(`next-${n}`)).filter((tag) => tag !== undefined);
  expect(taken).toEqual(free);
  for (const tag of ended) {
    expect(pool.ownerOf(tag)).toBe(free.includes(tag) ? `next-${free.indexOf(tag) + 1}` : `run-${tag - 1}`);
  }
});

test("looks take a small share of the time, also when they find nothing", () => {
  const { pool, takeAll, looks, pass } = poolThatSees([]);
  takeAll();
  for (let i = 0; i < 100; i++) pool.take("waiting");
  expect(looks()).toBe(2);
  pass(200);
  pool.take("waiting");
  expect(looks()).toBe(4);
});
