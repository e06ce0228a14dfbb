import { expect, test } from "bun:test";
import { Client } from "holdfast";
import { seeded, type Told, travel } from "./crash-clients.ts";
import { contradictions, leftovers } from "./crash-world.ts";
import { TestServer } from "./harness.ts";

/** Another seed at every run: HOLDFAST_CRASH_SEED repeats one, HOLDFAST_CRASH_SECONDS looks for what is rare. */
const seed = Number(process.env.HOLDFAST_CRASH_SEED ?? Date.now() % 1_000_000);
const seconds = Number(process.env.HOLDFAST_CRASH_SECONDS ?? 15);
/** Sandboxes on their way at a time. */
const TRAVELLERS = 4;
/** A server that is up lives as long as a few calls take. */
const LONGEST_LIFE_MS = 1000;
/** One in so many is killed before it is up; only some, or on a slow machine nothing would ever get done. */
const KILLED_EARLY = 4;
/** And one in so many is told to end, in the middle of whatever it does. */
const ENDED_PROPERLY = 5;

test(
  "whatever the moment a server is killed at, nothing is lost, nothing is left and nobody is told a lie",
  async () => {
    const server = await TestServer.start();
    try {
      // Known to have answered: from now on a refused connection means a restart.
      const client = await Client.connect({ ...server.at, patienceMs: 60_000 });
      await client.json({ method: "GET", path: "/v1/sandboxes", again: "safe" });
      const over = performance.now() + seconds * 1000;
      const told: Told[] = [];
      let faults = true;
      const traveller = async (_: unknown, i: number) => {
        for (let n = 0; performance.now() < over; n++) {
          const random = seeded(seed + i * 1000 + n);
          told.push(await travel({ name: `crash-${i}-${n}`, random, at: { client } }));
        }
      };
      const killing = killAgainAndAgain(server, () => faults);
      const ended = await Promise.allSettled(Array.from({ length: TRAVELLERS }, traveller));
      faults = false;
      const kills = await killing;

      const failures = ended.flatMap((end) =>
        end.status === "rejected" ? [String(end.reason?.stack ?? end.reason)] : [],
      );
      const world = failures.length > 0 ? [] : await contradictions(server, told);
      expect({ seed, failures, world }).toEqual({ seed, failures: [], world: [] });
      expect(kills).toBeGreaterThan(5);
      await server.deleteAll();
      expect({ seed, left: leftovers(server, []) }).toEqual({ seed, left: [] });
    } finally {
      await server.dispose();
    }
  },
  seconds * 1000 + 40_000,
);

/** Ends with a server that runs. */
async function killAgainAndAgain(server: TestServer, faults: () => boolean): Promise<number> {
  const random = seeded(seed);
  let kills = 0;
  for (; faults(); kills++) {
    await Bun.sleep(random() * LONGEST_LIFE_MS);
    await server.signal(random() * ENDED_PROPERLY > 1 ? "SIGKILL" : "SIGTERM");
    const booting = server.boot();
    if (random() * KILLED_EARLY > 1) await booting;
    // It says that it did not start.
    else booting.catch(() => {});
  }
  await server.restart("SIGKILL");
  return kills;
}
