import { expect, test } from "bun:test";
import { aHolding, aLease } from "./example-rows.ts";
import { inTheWay, type Phase, stateOf } from "./lease.ts";

const states: [Phase, string][] = [
  ["reserved", "creating"],
  ["creating", "creating"],
  ["starting", "creating"],
  ["live", "running"],
  ["pausing", "running"],
  ["paused", "paused"],
  ["resuming", "paused"],
  ["stop_due", "stopping"],
  ["stopping", "stopping"],
  ["quarantined", "stopping"],
];

test.each(states)("%s is %s to a user, or deleting", (phase, state) => {
  expect(stateOf(aHolding({}, aLease({ phase })))).toBe(state as never);
  expect(stateOf(aHolding({ desired: "deleted" }, aLease({ phase })))).toBe("deleting");
});

test("without an instance it is stopped, failed or deleting", () => {
  const rows = [{}, { launchFailures: 2 }, { launchFailures: 3 }, { desired: "deleted" }] as const;
  expect(rows.map((row) => stateOf(aHolding(row)))).toEqual(["stopped", "stopped", "failed", "deleting"]);
});

test("scenario 42: what a sweep found beside the instance is in the way of the next one, until it is gone or abandoned", () => {
  const found = aLease({ instanceId: "i2", phase: "debt", origin: "orphan", stopReason: "orphan" });
  const abandoned = { ...found, stopReason: "abandoned" };
  expect(inTheWay(aHolding({}, undefined, [found]))).toEqual(found);
  expect(inTheWay(aHolding({}, undefined, [abandoned]))).toBeUndefined();
  expect(inTheWay(aHolding({}, aLease(), [found]))).toEqual(aLease());
});
