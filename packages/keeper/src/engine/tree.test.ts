import { expect, test } from "bun:test";
import { isAlive, listProcesses, lookAt, signalExactly } from "./proc-table.ts";
import { killTree, treeMembers } from "./tree.ts";

const sleeper = (env: Record<string, string> = {}) =>
  Bun.spawn(["sleep", "60"], { env: { PATH: "/usr/bin:/bin", ...env }, detached: true });

test("a process of the same number but another start is never signalled", async () => {
  const child = sleeper();
  const real = lookAt(child.pid);
  if (real === undefined) throw new Error("the child is not there");
  const earlier = { pid: real.pid, startTime: real.startTime - 1 };
  expect(isAlive(earlier)).toBe(false);
  expect(signalExactly(earlier, "SIGKILL")).toBe(false);
  expect(await killTree({ leader: earlier, marker: "nobody" }, { graceMs: 10 })).toMatchObject({ killed: 0 });
  expect(isAlive(real)).toBe(true);
  expect(signalExactly(real, "SIGKILL")).toBe(true);
  await child.exited;
  expect(signalExactly(real, "SIGKILL")).toBe(false);
});

test("members are found by marker, group, session and descent, and nobody else is", async () => {
  const marker = crypto.randomUUID();
  const other = sleeper({ HOLDFAST_COMMAND: `${marker}x` });
  const leader = Bun.spawn(["bash", "-c", "env -i sleep 60 & sleep 60 & wait"], {
    env: { PATH: "/usr/bin:/bin", HOLDFAST_COMMAND: marker },
    detached: true,
  });
  const loose = sleeper({ HOLDFAST_COMMAND: marker });
  const ref = lookAt(leader.pid);
  const target = { leader: ref, marker };
  while (treeMembers(target).length < 4) await Bun.sleep(5);
  expect(await killTree(target)).toEqual({ verified: "lineage", killed: 4, survivors: [], unattributed: [] });
  await Promise.all([leader.exited, loose.exited]);
  expect(isAlive({ pid: other.pid, startTime: lookAt(other.pid)?.startTime ?? 0 })).toBe(true);
  other.kill("SIGKILL");
  await other.exited;
});

test("a stopped process is ended, too, and a program with brackets in its name is read right", async () => {
  const child = Bun.spawn(["bash", "-c", "exec -a 'a) b (c' sleep 60"], {
    env: { PATH: "/usr/bin:/bin" },
    detached: true,
  });
  while (lookAt(child.pid)?.name !== "sleep") await Bun.sleep(5);
  child.kill("SIGSTOP");
  const leader = lookAt(child.pid);
  expect(await killTree({ leader, marker: "stopped" })).toMatchObject({ killed: 1, survivors: [] });
  expect(child.signalCode ?? (await child.exited.then(() => child.signalCode))).toBe("SIGTERM");
});

test("zombies and other users' processes do not disturb the list", () => {
  const entries = listProcesses();
  expect(entries.find(({ pid }) => pid === process.pid)?.parent).toBe(process.ppid);
  expect(entries.every(({ state }) => state !== "Z")).toBe(true);
});
