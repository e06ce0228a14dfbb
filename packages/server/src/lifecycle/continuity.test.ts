import { afterEach, beforeEach, expect, test } from "bun:test";
import { describe } from "../http/describe.ts";
import { TestWorld } from "./test-world.ts";

let world: TestWorld;
beforeEach(async () => {
  world = new TestWorld();
  await world.server.start();
});
afterEach(() => world.close());

const LAYER = "the container's own files";

test("what a launch did not find of the disk is said to whoever remembers it, before anything runs", async () => {
  const { sandboxes } = world.server;
  await world.running("one");
  await sandboxes.stop("one");
  world.provider.diskFound = { state: "partly", lost: [LAYER] };
  const asked = { generation: 1, accept: "same-filesystem" } as const;
  await expect(sandboxes.use("one", asked)).rejects.toMatchObject({
    code: "state_lost",
    started: "no",
    details: { continuity: "restored", losses: [LAYER] },
    hint: expect.stringContaining("If-Continuity: restored"),
  });
  const { holding } = await sandboxes.use("one", { generation: 1, accept: "restored" });
  expect(describe(holding)).toMatchObject({ generation: 2, continuity: "restored", losses: [LAYER] });
  const told = await sandboxes.timeline("one", { since: 0, limit: 99 });
  expect(told.filter(({ type }) => type === "disk_lost").map(({ detail }) => detail)).toEqual([
    { generation: 2, continuity: "restored", lost: [LAYER] },
  ]);
});

test("a disk that is gone altogether is a fresh one, and a later stop keeps that", async () => {
  const { sandboxes } = world.server;
  await world.running("one");
  await sandboxes.stop("one");
  world.provider.diskFound = { state: "new", lost: [] };
  expect(describe((await sandboxes.use("one")).holding)).toMatchObject({
    continuity: "fresh",
    losses: ["the whole disk"],
  });
  await sandboxes.stop("one");
  world.provider.diskFound = { state: "kept", lost: [] };
  const third = describe((await sandboxes.use("one", { generation: 2, accept: "same-filesystem" })).holding);
  expect(third).toMatchObject({ generation: 3, continuity: "same-filesystem" });
  expect(third.losses).toBeUndefined();
  await expect(sandboxes.use("one", { generation: 1, accept: "restored" })).rejects.toMatchObject({
    details: { continuity: "fresh", losses: ["the whole disk"] },
  });
});
