import { expect, test } from "bun:test";
import { Followers } from "./followers.ts";

const soon = (work: Promise<void> | undefined) => Promise.race([work, Bun.sleep(20).then(() => "waits")]);

test("nobody follows, or nobody is far behind: the program never waits", () => {
  const followers = new Followers({ maxLagBytes: 100 });
  expect(followers.room(1_000_000)).toBeUndefined();
  const follower = followers.join(0);
  expect(followers.room(100)).toBeUndefined();
  follower.leave();
});

test("it waits for the slowest, and no longer than until that one has moved or left", async () => {
  const followers = new Followers({ maxLagBytes: 100 });
  const [slow, fast] = [followers.join(0), followers.join(500)];
  const room = followers.room(500);
  expect(await soon(room)).toBe("waits");
  slow.moved(399);
  expect(await soon(room)).toBe("waits");
  slow.moved(400);
  expect(await soon(room)).toBeUndefined();
  const again = followers.room(700);
  slow.leave();
  fast.leave();
  expect(await soon(again)).toBeUndefined();
});

test("one that does not move at all is given up after a while, and counts again when it moves", async () => {
  const followers = new Followers({ maxLagBytes: 100, patienceMs: 50 });
  const stuck = followers.join(0);
  await followers.room(500);
  expect(followers.room(501)).toBeUndefined();
  stuck.moved(1);
  expect(followers.room(501)).toBeDefined();
  stuck.leave();
  stuck.leave();
});
