import { expect, test } from "bun:test";
import {
  type FoundSnapshot,
  nextSnapshotStep,
  noteOf,
  type SnapshotRow,
  type SnapshotStep,
} from "./snapshot.ts";

const NOW = 1_000_000;

const row: SnapshotRow = {
  id: "snap1",
  name: "before",
  tenantId: "default",
  provider: "fake",
  sandboxId: "s1",
  generation: 1,
  origin: "request",
  spec: {},
  labels: {},
  phase: "ready",
  parts: [],
  checksum: null,
  copiedBytes: 0,
  createdAt: NOW - 10,
  expiresAt: null,
  failure: null,
  owner: "srv",
  busyUntil: NOW,
  version: 1,
};
const content = { parts: [{ name: "workspace", files: 1, sizeBytes: 2 }], checksum: "sha256:00" };
const found: FoundSnapshot = {
  ref: { installationId: "ours", snapshotId: "snap1" },
  note: noteOf(row),
  content,
};

type World = Parameters<typeof nextSnapshotStep>[1];
const cases: [what: string, row: Partial<SnapshotRow>, world: Partial<World>, step: SnapshotStep["do"]][] = [
  ["somebody makes it", { phase: "making" }, { abandoned: false, found: undefined }, "rest"],
  ["its maker died, and nothing is there", { phase: "making" }, { found: undefined }, "fail"],
  ["its maker died after it was whole", { phase: "making" }, {}, "conclude"],
  ["it is there", {}, {}, "rest"],
  ["it is not there any more", {}, { found: undefined }, "fail"],
  ["its time is to come", { expiresAt: NOW + 1 }, {}, "rest"],
  ["its time is over", { expiresAt: NOW }, {}, "order-removal"],
  ["it is a fork's, and whoever forks is at it", { origin: "fork" }, { abandoned: false }, "rest"],
  ["it is a fork's, who may come again", { origin: "fork", busyUntil: NOW + 1 }, {}, "rest"],
  ["it is a fork's, who did not come again", { origin: "fork" }, {}, "order-removal"],
  ["why it failed is still told", { phase: "failed", expiresAt: NOW + 1 }, { found: undefined }, "rest"],
  ["it failed, and came whole after all", { phase: "failed" }, {}, "conclude"],
  ["why it failed was told long enough", { phase: "failed", expiresAt: NOW }, {}, "order-removal"],
  ["it is to go, and a sandbox is being made from it", { phase: "deleting" }, { usedBy: 1 }, "rest"],
  ["it is to go", { phase: "deleting" }, {}, "remove"],
  ["it is to go, and its maker has not noticed yet", { phase: "deleting" }, { abandoned: false }, "rest"],
];

test.each(cases)("%s", (_what, over, world, step) => {
  const decided = nextSnapshotStep(
    { ...row, ...over },
    { found, usedBy: 0, abandoned: true, now: NOW, ...world },
  );
  expect(decided.do).toBe(step);
  if (decided.do === "conclude") expect(decided.content).toEqual(content);
});
