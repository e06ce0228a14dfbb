import { providerConformance } from "@holdfast/testkit";
import { Machine } from "../../fixtures/machine.ts";
import { launchAsBefore } from "../../fixtures/older-release.ts";
import { fullNetworkProblem } from "./network.ts";

const networks = fullNetworkProblem() === undefined ? (["none", "full"] as const) : (["none"] as const);

for (const network of networks) {
  providerConformance(`local, network ${network}`, {
    timeoutMs: 30_000,
    setUp: async () => {
      const machine = await Machine.open();
      return {
        open: () => machine.open(),
        plan: machine.plan({ network }),
        launchLegacy: (ref) => launchAsBefore(machine, ref, "unmarked"),
        crash: (ref) => machine.crash(ref),
        leftovers: async () => machine.leftovers(),
        close: () => machine.close(),
      };
    },
  });
}
