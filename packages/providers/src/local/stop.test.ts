import { afterAll, beforeAll, expect, test } from "bun:test";
import { Machine } from "../../fixtures/machine.ts";

let machine: Machine;
beforeAll(async () => {
  machine = await Machine.open();
});
afterAll(() => machine.close());

const soon = () => AbortSignal.timeout(20_000);
const asRoot = process.getuid?.() === 0;

test("a keeper that misses the first signal is asked again", async () => {
  const ref = await machine.launch({ network: "none", env: { DEAF_TO: "2" } });
  const start = performance.now();
  const seen = await machine.provider.stop(ref, "graceful", soon());
  expect(seen).toEqual({
    state: "absent",
    proof: "exited",
    detail: expect.stringMatching(/^keeper pid \d+ .* is gone/),
  });
  expect(performance.now() - start).toBeLessThan(4_000);
  await machine.clear();
});

// Once is enough for its six seconds.
test.if(asRoot)(
  "a keeper that does not hear is killed after its grace",
  async () => {
    const ref = await machine.launch({ network: "none", env: { DEAF_TO: "1000" } });
    expect((await machine.provider.stop(ref, "graceful", soon())).state).toBe("absent");
    await machine.clear();
  },
  120_000,
);

test("a stopped keeper is ended all the same", async () => {
  const ref = await machine.launch({ network: "none" });
  process.kill(await machine.keeperPid(ref), "SIGSTOP");
  expect((await machine.provider.observe(ref, soon())).state).toBe("running");
  expect((await machine.provider.stop(ref, "force", soon())).state).toBe("absent");
  await machine.clear();
});

test("everything inside ends with the keeper, also what has left its session and closed its files", async () => {
  const ref = await machine.launch({ network: "none" });
  const marker = `holdfast-daemon-${process.pid}`;
  const daemon = `setsid sh -c 'trap "" TERM HUP; while :; do sleep 1; done' ${marker} > /dev/null 2>&1 < /dev/null &`;
  await machine.run(ref, "bash", "-c", `for i in 1 2 3 4 5; do ${daemon} done`);
  const count = () => Number(Bun.spawnSync(["pgrep", "-fc", `${marker}$`]).stdout.toString());
  while (count() < 5) await Bun.sleep(5);
  await machine.provider.stop(ref, "graceful", soon());
  expect(count()).toBe(0);
  await machine.clear();
});

test("an aborted stop can be taken up again", async () => {
  const ref = await machine.launch({ network: "none", env: { DEAF_TO: "1000" } });
  await expect(machine.provider.stop(ref, "graceful", AbortSignal.timeout(50))).rejects.toBeDefined();
  expect((await machine.provider.stop(ref, "force", soon())).state).toBe("absent");
  await machine.clear();
});
