import { type Case, manySandboxes } from "../bench.ts";
import { timed } from "../measure.ts";
import { pssMiB } from "../memory.ts";

/** Many that do nothing. */
export const density: Case = {
  name: "density",
  about: "Idle sandboxes",
  async run(bench) {
    const server = await bench.newServer();
    for (const count of bench.isShort ? [20] : [100, 300]) {
      bench.say(`  ${count} …`);
      const names: string[] = [];
      const ms = await timed(async () => {
        for (const { id } of await manySandboxes(server, count)) names.push(id);
      });
      const each = pssMiB(names) / count;
      bench.line(
        `${count} idle: memory of each (PSS of keeper and bubblewrap)`,
        "MiB",
        [{ role: "ours", name: "ours", value: each }],
        { aims: [{ atMost: 5e6 / 1024 ** 2 }] },
      );
      bench.line(`${count} idle: time to make each, 8 at a time`, "ms", [
        { role: "ours", name: "ours", value: ms / count },
      ]);
      await server.deleteAll();
    }
  },
};
