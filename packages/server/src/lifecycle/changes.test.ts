import { expect, test } from "bun:test";
import { Bell } from "./bell.ts";
import { type ChangeNews, Changes } from "./changes.ts";
import { HandClock } from "./hand-clock.ts";
import { TestWorld } from "./test-world.ts";

test("who stays behind by more than is kept is told to look, and one that changes often is told once", async () => {
  const world = new TestWorld();
  await world.server.start();
  const { sandboxId } = await world.server.sandboxes.create({ name: "one" });
  const bell = new Bell();
  const changes = new Changes({ store: world.store, bell, clock: new HandClock(), owner: "me" });
  const left = new AbortController();
  const follow = async (since: string, count: number): Promise<ChangeNews["type"][]> => {
    const told: ChangeNews["type"][] = [];
    for await (const news of changes.follow({ since, signal: left.signal })) {
      if (news !== "quiet") told.push(news.type);
      if (told.length === count) break;
    }
    return told;
  };
  for (let no = 0; no < 100; no++) bell.ring(sandboxId);
  bell.ring("another");
  expect(await follow("me-0", 2)).toEqual(["changed", "gone"]);
  for (let no = 0; no < 10_000; no++) bell.ring(sandboxId);
  expect(await follow("me-0", 1)).toEqual(["resync"]);
  expect(await follow("me-10000", 1)).toEqual(["changed"]);
  left.abort();
  await world.close();
});
