import { expect, test } from "bun:test";
import { settled } from "./hand-clock.ts";
import { Lanes } from "./lanes.ts";

test("so many at a time of each name, in order, and a failure gives its place on", async () => {
  const lanes = new Lanes(2);
  const begun: string[] = [];
  const ends: Record<string, () => void> = {};
  const run = (name: string, what: string) =>
    lanes
      .run(name, async () => {
        begun.push(what);
        await new Promise<void>((resolve) => {
          ends[what] = resolve;
        });
        if (what === "a1") throw new Error("a1 failed");
        return what;
      })
      .catch(String);
  const all = ["a1", "a2", "a3", "a4"].map((what) => run("a", what));
  const other = run("b", "b1");
  await settled();
  expect(begun).toEqual(["a1", "a2", "b1"]);
  ends.a1?.();
  await settled();
  expect(begun).toEqual(["a1", "a2", "b1", "a3"]);
  for (const what of ["a2", "a3", "b1"]) ends[what]?.();
  await settled();
  ends.a4?.();
  expect(await Promise.all([...all, other])).toEqual(["Error: a1 failed", "a2", "a3", "a4", "b1"]);
  // Every place is free again.
  expect(await Promise.all([1, 2].map((n) => lanes.run("a", async () => n)))).toEqual([1, 2]);
});
