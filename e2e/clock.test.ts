import { Database } from "bun:sqlite";
import { expect, test } from "bun:test";
import { join } from "node:path";
import { Sandbox } from "holdfast";
import { FakeClock, missingFaketime } from "./faketime.ts";
import { nextEvent, TestServer } from "./harness.ts";

const SHORT_SECONDS = 4;
/** A minute passes between two sweeps; until the first after a jump is due nothing may have been put off. */
const SWEEP_EVERY_MS = 60_000;

/** What happens around the jump. */
const moments = {
  "while the server runs": async (_server: TestServer, jump: () => void) => jump(),
  "between two servers": async (server: TestServer, jump: () => void) => {
    await server.signal("SIGKILL");
    jump();
    await server.boot();
  },
};

for (const hours of [1, -1]) {
  for (const [moment, around] of Object.entries(moments)) {
    test.concurrent.skipIf(missingFaketime !== undefined)(
      `scenario 52: the clock jumps by ${hours} h ${moment}: nothing is reaped early, and nothing is put off`,
      async () => {
        const clock = new FakeClock();
        const server = await TestServer.start({ env: clock.env });
        try {
          await jumpAround(server, () => around(server, () => clock.set(hours * 3600)));
          expect(putOff(server.dataDir, Date.now() + hours * 3_600_000)).toEqual([]);
        } finally {
          await server.dispose();
          clock.close();
        }
      },
      60_000,
    );
  }
}

async function jumpAround(server: TestServer, jump: () => Promise<void>): Promise<void> {
  const long = await Sandbox.create({ name: "long", lifetimeSeconds: 60 }, server.at);
  await using _turn = await long.beginTurn();
  await using _claim = await long.claim({ holder: "worker", ttlSeconds: 300 });
  const short = await Sandbox.create({ name: "short", lifetimeSeconds: SHORT_SECONDS }, server.at);
  await short.exec("true");
  const usedAt = performance.now();
  await jump();

  // At once after it: work, a launch, and an end with evidence.
  expect(await long.exec("echo here")).toMatchObject({ stdout: "here\n", generation: 1 });
  const during = await Sandbox.create({ name: "during" }, server.at);
  await during.delete();

  expect(await nextEvent(short, "gone")).toMatchObject({ cause: "idle", detail: { generation: 1 } });
  const idleMs = performance.now() - usedAt;
  expect(idleMs).toBeGreaterThan(SHORT_SECONDS * 950);
  expect(idleMs).toBeLessThan(SHORT_SECONDS * 1000 + 15_000);

  expect((await long.refresh()).info).toMatchObject({ state: "running", generation: 1, openTurns: 1 });
  expect((await long.why()).claim).toMatchObject({ holder: "worker" });
}

/** Jobs that are due later than they would be on a clock that nobody set. */
function putOff(dataDir: string, now: number): unknown[] {
  const db = new Database(join(dataDir, "holdfast.db"), { readonly: true });
  try {
    const sql = "SELECT name, due_at - ?1 AS inMs FROM job WHERE name LIKE 'sweep:%' AND due_at > ?1 + ?2";
    return db.query(sql).all(now, SWEEP_EVERY_MS);
  } finally {
    db.close();
  }
}
