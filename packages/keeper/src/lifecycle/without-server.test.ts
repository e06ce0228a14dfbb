import { expect, setDefaultTimeout, test } from "bun:test";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { startTestKeeper } from "../test-keeper.ts";
import { inProcessKeeper } from "./test-keeper-here.ts";

// A second each on a machine that does nothing else.
setDefaultTimeout(120_000);

const HOUR = 3_600_000;

test("scenario 18: held by a watch it lives; without, it ends in order, and the next one says why", async () => {
  const first = await inProcessKeeper();
  await first.call("/v1/sessions", { sessionId: "s" });
  await first.call("/v1/sessions/s/exec", { command: "kept=yes" });
  const gone = new AbortController();
  const watch = await first.request("/v1/watch", { signal: gone.signal });
  expect((await watch.body?.getReader().read())?.value).toEqual(new Uint8Array([10]));
  first.timers.advance(100 * HOUR);
  expect((await first.call("/v1/keeper")).status).toBe(200);

  gone.abort();
  let isOver = false;
  void first.over.then(() => {
    isOver = true;
  });
  // It hears of the abort when it comes to it; from then on an hour is enough.
  for (; !isOver; await Bun.sleep(1)) first.timers.advance(HOUR);
  await using next = await inProcessKeeper({ dir: first.dir });
  expect((await next.call("/v1/keeper")).body.lastEnd).toEqual({
    cause: "idle_without_server",
    at: expect.stringMatching(/^\d{4}-.*Z$/),
    generation: 7,
  });
  expect((await next.call("/v1/sessions/s/exec", { command: "echo $kept" })).body).toMatchObject({
    stdout: "yes\n",
    restored: { from: "checkpoint", commandsLost: 0 },
  });
});

test("a command outlives the idle limit, but not that of an orphan", async () => {
  const keeper = await inProcessKeeper({ admit: { orphanLimitSeconds: 86_400 } });
  await keeper.call("/v1/exec", { command: ["sleep", "100"], commandId: "c", yieldMs: 0 });
  keeper.timers.advance(23 * HOUR);
  expect((await keeper.call("/v1/commands/c")).body.status).toBe("running");
  keeper.timers.advance(24 * HOUR);
  await keeper.over;
  expect(JSON.parse(readFileSync(join(keeper.dir, "state/last-end.json"), "utf8")).cause).toBe(
    "orphan_limit",
  );
  await keeper[Symbol.asyncDispose]();
});

test("its greatest age ends it, in contact or not; and says so in its log", async () => {
  await using keeper = await startTestKeeper({ admit: "no" });
  const { instanceId, generation } = keeper.boot;
  await keeper.call("/v1/admit", { instanceId, generation, fence: 1, maxLifetimeSeconds: 1 });
  const watch = await keeper.request("/v1/watch");
  await keeper.child.exited;
  expect(await watch.text()).toBe("\n");
  await using next = await startTestKeeper({ dir: keeper.dir });
  expect((await next.call("/v1/keeper")).body.lastEnd).toMatchObject({ cause: "max_lifetime" });
});

test.each<[string, string | undefined]>([
  ["told", "told"],
  ["signal", "signal"],
  ["crash", undefined],
  ["forged", undefined],
])("the next keeper says how the one before ended: %s", async (how, cause) => {
  const first = await startTestKeeper();
  if (how === "told") await first.call("/v1/shutdown", {});
  else first.child.kill(how === "signal" ? "SIGTERM" : "SIGKILL");
  await first.child.exited;
  if (how === "forged") writeFileSync(join(first.boot.stateDir, "last-end.json"), '{"cause":"sabotage"}');
  await using next = await startTestKeeper({ dir: first.dir });
  expect((await next.call("/v1/keeper")).body.lastEnd?.cause).toBe(cause);
});

test("a keeper that was stopped and continued has lost one tick, however long it stood still", async () => {
  await using keeper = await startTestKeeper({ admit: "no" });
  const { instanceId, generation } = keeper.boot;
  await keeper.call("/v1/admit", { instanceId, generation, fence: 1, orphanLimitSeconds: 7 });
  keeper.child.kill("SIGSTOP");
  await Bun.sleep(8_000); // longer than it may be alone
  const continuedAt = performance.now();
  keeper.child.kill("SIGCONT");
  await keeper.child.exited;
  // Five of its seven seconds are gone.
  expect(performance.now() - continuedAt).toBeGreaterThan(1_500);
});
