import { expect, test } from "bun:test";
import { broken } from "./guard.ts";
import { type Line, single } from "./report.ts";

const WHAT = "10 MB through one";

function line(ours: number, floor: number): Line {
  const entries = [
    { role: "ours" as const, name: "ours", summary: single(ours) },
    { role: "floor" as const, name: "a bare PTY", summary: single(floor) },
  ];
  return { group: "A terminal", what: WHAT, unit: "MB/s", aims: [], entries };
}

const about = (lines: Line[]) => broken(lines).filter((text) => text.includes(WHAT));

test("a ratio that has doubled is told, unless a second measurement has it in bounds", () => {
  expect(about([line(50, 100)])).toEqual([]);
  expect(about([line(10, 100)])).toEqual([
    '"10 MB through one" is 0.10 times "a bare PTY"; it must be 0.12 times that',
  ]);
  expect(about([line(10, 100), line(30, 100)])).toEqual([]);
});

test("what was not measured is no pass", () => {
  expect(about([])).toEqual(['"10 MB through one" was not measured beside "a bare PTY"']);
});
