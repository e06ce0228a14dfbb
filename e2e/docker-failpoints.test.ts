import { expect, test } from "bun:test";
import { missingDocker, startDockerDaemon } from "@holdfast/testkit";
import { carryOut, findPoints, type Kill, nameOf } from "./failpoints/sweep.ts";

const missing = missingDocker();

/** The moments at which the daemon has done something that no row knows of yet. The whole: `npm run failpoints`. */
const MOMENTS = [
  "provider.launch:1:after",
  "provider.launch:2:after",
  "provider.stop:1:after",
  "provider.removeDisk:1:after",
];

(missing === undefined ? test : test.skip)(
  "scenario 55 on Docker: a server that is killed beside its daemon leaves nothing wrong",
  async () => {
    const daemon = await startDockerDaemon();
    try {
      const points = await findPoints({ daemon, only: "stopped, started and deleted" });
      const kills = points.filter((kill) => MOMENTS.some((moment) => nameOf(kill).endsWith(`: ${moment}`)));
      expect(kills.map(momentOf).sort()).toEqual([...MOMENTS].sort());
      const outcomes = await carryOut(kills, { daemon });
      expect(outcomes.filter(({ wrong }) => wrong.length > 0)).toEqual([]);
      expect(outcomes.filter(({ died }) => !died)).toEqual([]);
      const networks = (await daemon.ask("GET", "/networks")) as { Name: string }[];
      expect(networks.filter(({ Name }) => Name.startsWith("hf-"))).toEqual([]);
    } finally {
      await daemon.stop();
    }
  },
  120_000,
);

function momentOf(kill: Kill): string {
  return nameOf(kill).slice(kill.life.name.length + 2);
}
