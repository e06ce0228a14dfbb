import { expect, test } from "bun:test";
import { type SeenProcess, workDone } from "./work-done.ts";

const MINUTE = 60_000;
const LIFETIME_MS = 30 * MINUTE;

const seen = (key: string, cpuMs: number, more: Partial<SeenProcess> = {}): SeenProcess => ({
  key,
  parent: undefined,
  tree: "p",
  cpuMs,
  waitedCpuMs: 0,
  isAtWork: false,
  ...more,
});

test.each<
  [string, { before: SeenProcess[]; now: SeenProcess[]; afterMs?: number; workMs: number | undefined }]
>([
  ["nothing used", { before: [seen("a", 500)], now: [seen("a", 500)], workMs: undefined }],
  ["a trace of half an hour", { before: [seen("a", 0)], now: [seen("a", 18_000)], workMs: undefined }],
  ["more than a trace", { before: [seen("a", 0)], now: [seen("a", 18_010)], workMs: 18_010 }],
  ["50 ms in one second", { before: [], now: [seen("a", 50)], afterMs: 1_000, workMs: undefined }],
  ["60 ms in one second", { before: [], now: [seen("a", 60)], afterMs: 1_000, workMs: 60 }],
  [
    "half an hour's work after a day of sleep is not measured by the day",
    { before: [seen("a", 0)], now: [seen("a", 20_000)], afterMs: 48 * 30 * MINUTE, workMs: 20_000 },
  ],
  [
    "a build that has just begun, and is at work at this moment",
    { before: [], now: [seen("a", 2_000, { isAtWork: true })], workMs: 2_000 },
  ],
  [
    "one that just looks at the clock",
    { before: [], now: [seen("a", 10, { isAtWork: true })], workMs: undefined },
  ],
  [
    "what was used before the first look counts then",
    { before: [], now: [seen("server", 30_000)], workMs: 30_000 },
  ],
  [
    "children that began and ended meanwhile",
    { before: [seen("make", 10)], now: [seen("make", 10, { waitedCpuMs: 60_000 })], workMs: 60_000 },
  ],
  [
    "a child that ended without having done more is not counted again with its past",
    {
      before: [seen("pool", 10), seen("worker", 90_000, { parent: "pool" })],
      now: [seen("pool", 10, { waitedCpuMs: 90_000 })],
      workMs: undefined,
    },
  ],
  [
    "nor is a grandchild",
    {
      before: [seen("a", 0), seen("b", 40_000, { parent: "a" }), seen("c", 50_000, { parent: "b" })],
      now: [seen("a", 0, { waitedCpuMs: 90_020 })],
      workMs: undefined,
    },
  ],
  [
    "but the past of one hides nothing of another's children",
    {
      before: [seen("old", 90_000), seen("make", 0)],
      now: [seen("make", 0, { waitedCpuMs: 30_000 })],
      workMs: 30_000,
    },
  ],
  [
    "a number that was used again is another process",
    { before: [seen("7:1", 90_000)], now: [seen("7:2", 20_000)], workMs: 20_000 },
  ],
])("%s", (_, { before, now, afterMs = LIFETIME_MS, workMs }) => {
  const work = workDone(
    { at: 0, processes: before },
    { at: afterMs, processes: now },
    { lifetimeMs: LIFETIME_MS },
  );
  expect(work).toEqual(workMs === undefined ? [] : [{ tree: "p", cpuMs: workMs }]);
});

test("a hundred idle trees are not one that works", () => {
  const processes = Array.from({ length: 100 }, (_, i) => seen(`${i}`, 3_000, { tree: `p${i}` }));
  expect(
    workDone({ at: 0, processes: [] }, { at: LIFETIME_MS, processes }, { lifetimeMs: LIFETIME_MS }),
  ).toEqual([]);
});
