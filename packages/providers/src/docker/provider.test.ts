import { test } from "bun:test";
import { missingDocker, providerConformance } from "@holdfast/testkit";
import { DockerMachine, launchUnmarked } from "../../fixtures/docker-machine.ts";

const missing = missingDocker();
if (missing !== undefined) test.skip(`provider conformance: docker (${missing})`, () => {});
else {
  providerConformance("docker", {
    timeoutMs: 60_000,
    setUp: async () => {
      const machine = await DockerMachine.open();
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
