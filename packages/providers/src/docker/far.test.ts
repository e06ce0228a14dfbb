import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { missingDocker, providerConformance } from "@holdfast/testkit";
import { DockerApi } from "./api.ts";
import { removeAbandonedSenders } from "./bundle-volume.ts";
import { DockerMachine } from "./test-machine.ts";
import { launchUnmarked } from "./test-servers.ts";

const missing = missingDocker();
const TIMEOUT_MS = 120_000;
const soon = () => AbortSignal.timeout(20_000);

describe.skipIf(missing !== undefined)(`docker: a daemon elsewhere${missing ? ` (${missing})` : ""}`, () => {
  let machine: DockerMachine;
  beforeAll(async () => {
    machine = await DockerMachine.openFar();
  }, TIMEOUT_MS);
  afterAll(() => machine?.close(), TIMEOUT_MS);

  test(
    "a trial finds out that it does not see our files, and how its keepers are reached",
    async () => {
      const provider = machine.open({ reach: "files" });
      const checks = await provider.probe();
      expect(checks.filter(({ ok }) => !ok)).toEqual([]);
      expect(checks.at(-1)).toMatchObject({
        name: "instance",
        detail: expect.stringContaining("reached by the daemon's API, because"),
      });
      expect((await provider.capacity(soon())).disk.freeBytes).toBeGreaterThan(0);
      const ref = machine.own(machine.newRef());
      await provider.launch(ref, machine.plan({ network: "none" }), soon());
      expect(await machine.exec(ref, "echo hi; id -u")).toMatchObject({ stdout: "hi\n1000\n" });
      await machine.clear();
      expect(await machine.leftovers()).toEqual([]);
    },
    TIMEOUT_MS,
  );

  test("what a server left that was killed while it sent its keeper is removed, and nobody's who still sends", async () => {
    const { daemon } = machine;
    const body = { Image: daemon.images.busybox, Cmd: ["x"], Labels: { "holdfast.keeper-sender": "x" } };
    await daemon.ask("POST", "/containers/create?name=hf-keeper-left", body);
    const names = async () => JSON.stringify(await daemon.ask("GET", "/containers/json?all=1"));
    const api = new DockerApi(daemon.host);
    await removeAbandonedSenders(api, { now: Date.now(), signal: soon() });
    expect(await names()).toContain("hf-keeper-left");
    await removeAbandonedSenders(api, { now: Date.now() + 3_600_000, signal: soon() });
    expect(await names()).not.toContain("hf-keeper-left");
  }, 120_000);
});

/** What a bridge could get wrong. `HOLDFAST_FAR=all` is the whole suite, which takes a minute. */
const short = [
  "a launched instance runs, answers",
  "a restarted server finds",
  "stop ends it, may be repeated",
  "a crashed instance is absent",
  "scenario 40",
];

if (missing === undefined) {
  providerConformance("docker, elsewhere", {
    timeoutMs: TIMEOUT_MS,
    ...(process.env.HOLDFAST_FAR !== "all" && { only: short }),
    setUp: async () => {
      const machine = await DockerMachine.openFar();
      return {
        open: () => machine.open(),
        plan: machine.plan({ network: "none" }),
        launchLegacy: (ref) => launchUnmarked(machine, ref),
        crash: (ref) => machine.crash(ref),
        leftovers: () => machine.leftovers(),
        close: () => machine.close(),
      };
    },
  });
}
