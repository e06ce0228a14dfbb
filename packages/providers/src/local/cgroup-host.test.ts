import { expect, test } from "bun:test";
import { existsSync } from "node:fs";
import { join } from "node:path";

/** The trials that servers have under way, and those that a killed one has left. */
function trials(): string[] {
  const cwd = "/sys/fs/cgroup";
  const places = ["holdfast/probe-*", "*/holdfast/probe-*"];
  const found = places.flatMap((place) => [...new Bun.Glob(place).scanSync({ cwd, onlyFiles: false })]);
  return found.map((path) => join(cwd, path));
}

/** Looks at this machine's control groups until it is killed, so many milliseconds after it began. */
async function lookAndDie(afterMs: number): Promise<void> {
  const script = `const { findCgroupHost } = await import(${JSON.stringify(join(import.meta.dir, "cgroup-host.ts"))});
    console.log("begins"); for (;;) await findCgroupHost();`;
  const server = Bun.spawn([process.execPath, "-e", script], { stdio: ["ignore", "pipe", "inherit"] });
  await server.stdout.getReader().read();
  await Bun.sleep(afterMs);
  server.kill("SIGKILL");
  await server.exited;
}

test("a server that is killed while it tries control groups leaves none", async () => {
  const before = new Set(trials());
  await Promise.all(Array.from({ length: 8 }, (_, i) => lookAndDie(5 + i * 4)));
  let left = trials().filter((trial) => !before.has(trial));
  // What was under way ends by itself.
  for (let i = 0; i < 200 && left.length > 0; i++) {
    await Bun.sleep(10);
    left = left.filter((trial) => existsSync(trial));
  }
  expect(left).toEqual([]);
});
