import { test } from "bun:test";
import { type Engine, missingDocker, providerConformance } from "@holdfast/testkit";
import { DockerMachine } from "./test-machine.ts";
import { launchUnmarked } from "./test-servers.ts";

/** Podman speaks Docker's API; what it does is its own. */
const engines: readonly Engine[] = ["docker", "podman"];

for (const engine of engines) {
  const missing = missingDocker(engine);
  if (missing === undefined) conformance(engine);
  else test.skip(`provider conformance: ${engine} (${missing})`, () => {});
}

function conformance(engine: Engine): void {
  providerConformance(engine, {
    timeoutMs: 60_000,
    setUp: async () => {
      const machine = await DockerMachine.open({ engine });
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
