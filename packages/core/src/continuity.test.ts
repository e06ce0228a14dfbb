import { expect, test } from "bun:test";
import { continuityOf, diskFound, isAtLeast, lossesOf } from "./continuity.ts";
import { aSandbox } from "./example-rows.ts";
import { policyOf } from "./policy.ts";

const ephemeral = { policy: policyOf({ filesystem: "ephemeral" }) };
/** Generation 3 began without its layer, generation 5 without anything. */
const partly = { diskHistory: { newSince: 0, partlySince: 3, lost: ["a layer"] } };
const anew = { diskHistory: { newSince: 5, partlySince: 3, lost: ["the whole disk"] } };

const cases = [
  [{}, 1, undefined, "fresh"],
  [{}, 2, undefined, "same-filesystem"],
  [{}, 2, 2, "same-process"],
  [{}, 3, 2, "same-filesystem"],
  [ephemeral, 2, undefined, "fresh"],
  [ephemeral, 2, 2, "same-process"],
  [partly, 3, undefined, "restored"],
  [partly, 3, 3, "same-process"],
  [partly, 4, undefined, "same-filesystem"],
  [partly, 4, 3, "same-filesystem"],
  [partly, 4, 2, "restored"],
  [anew, 5, undefined, "fresh"],
  [anew, 6, undefined, "same-filesystem"],
  [anew, 6, 4, "fresh"],
] as const;

test.each(cases)("%j at generation %d, remembered %p: %s", (over, present, remembered, continuity) => {
  const sandbox = aSandbox(over);
  expect(continuityOf(sandbox, present, remembered)).toBe(continuity);
  const isLoss = continuity === "restored" || (continuity === "fresh" && present > 1);
  expect(lossesOf(sandbox, present, remembered)).toEqual(isLoss ? (sandbox.diskHistory?.lost ?? []) : []);
});

test("what a launch found missing is a loss of those who lived before, and of a disk that was to be kept", () => {
  const lastDeath = { cause: "stop_requested", at: "now", detail: "" };
  const lived = aSandbox({ lastDeath });
  const layer = { state: "partly", lost: ["a layer"] } as const;
  const nothing = { state: "new", lost: [] } as const;
  expect(diskFound(lived, 3, layer)).toEqual({
    sandbox: partly,
    entries: [
      {
        type: "disk_lost",
        cause: "removed_outside",
        detail: { generation: 3, continuity: "restored", lost: ["a layer"] },
      },
    ],
  });
  expect(diskFound({ ...lived, ...partly }, 5, nothing).sandbox).toEqual(anew);
  expect(diskFound(lived, 2, { state: "kept", lost: [] })).toEqual({});
  expect(diskFound(lived, 2, undefined)).toEqual({});
  expect(diskFound(aSandbox(), 2, layer)).toEqual({});
  expect(diskFound(aSandbox({ lastDeath, ...ephemeral }), 2, nothing)).toEqual({});
});

test("what is accepted is the least that is accepted", () => {
  expect(isAtLeast("same-filesystem", "restored")).toBe(true);
  expect(isAtLeast("restored", "same-filesystem")).toBe(false);
  expect(isAtLeast("same-process", "same-process")).toBe(true);
});
