import { afterAll, beforeAll, expect, test } from "bun:test";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { Machine } from "../../fixtures/machine.ts";
import { nameOf } from "./name.ts";
import { fullNetworkProblem } from "./network.ts";
import { childrenOf, findByName, isAlive, isKeeper, readProcess } from "./processes.ts";

const networks = fullNetworkProblem() === undefined ? (["none", "full"] as const) : (["none"] as const);

let machine: Machine;
beforeAll(async () => {
  machine = await Machine.open();
});
afterAll(() => machine.close());

const soon = () => AbortSignal.timeout(5_000);

/** Every process on the host with this argument, whatever it is. */
function withArgument(name: string): string[] {
  return readdirSync("/proc").filter((entry) => {
    try {
      return /^\d+$/.test(entry) && readFileSync(`/proc/${entry}/cmdline`, "utf8").split("\0").includes(name);
    } catch {
      return false; // it ended meanwhile
    }
  });
}

const disguises = [
  { as: "a wrapper", argv0: "/usr/bin/bwrap" },
  { as: "a launcher", argv0: "/usr/bin/sh" },
  { as: "a keeper", argv0: "/.holdfast/bin/ld.so" },
];
test.each(disguises)("a process inside that dresses up as $as is not taken for one", async ({ argv0 }) => {
  const ref = await machine.launch({ network: "none" });
  const claimed = { ...ref, sandboxId: `${ref.sandboxId}-claimed` };
  const name = `hf-${claimed.sandboxId}-g1`;
  const script = `exec -a ${argv0} sh -c 'sleep 30; :' ${name} > /dev/null 2>&1`;
  await machine.run(ref, "bash", "-c", `(${script}) &`);
  while (withArgument(name).length === 0) await Bun.sleep(1);
  expect(await findByName(name)).toEqual([]);
  expect((await machine.provider.observe(claimed, soon())).state).toBe("absent");
  await machine.clear();
});

test.each(networks)(
  "a launch knows its keeper without a look at every process, with network %s",
  async (network) => {
    const ref = await machine.launch({ network });
    const note = join(machine.dataDir, "instances", nameOf(ref), "keeper.pid");
    const noted = Number(readFileSync(note, "utf8"));
    expect((await findByName(nameOf(ref))).filter(isKeeper).map(({ pid }) => pid)).toEqual([noted]);
    await machine.clear();
  },
);

test("a launcher is found at every moment, also between two of its programs", async () => {
  for (let round = 0; round < 40; round++) {
    const name = `hf-race-${process.pid}-${round}`;
    const steps = Array.from({ length: 6 }, () => ["sh", "-c", 'exec "$@"', name]).flat();
    const child = Bun.spawn([...steps, "sh", "-c", "read end", name], { stdin: "pipe" });
    while (readProcess(child.pid)?.argv.includes(name) === false) await Bun.sleep(0);
    for (let look = 0; look < 8; look++) {
      expect((await findByName(name)).map(({ pid }) => pid)).toEqual([child.pid]);
    }
    child.stdin.end();
    await child.exited;
    expect(await findByName(name)).toEqual([]);
  }
});

test.if(process.getuid?.() === 0)("what is over and cannot leave is waited for once", async () => {
  const outer = Bun.spawn(["unshare", "--pid", "--fork", "--kill-child", "sleep", "1000"]);
  const first = () => childrenOf(outer.pid)[0];
  while (first() === undefined) await Bun.sleep(1);
  const stuck = first() as number;
  // The first process of a namespace stays until its last one is reaped, and whoever should do that is asleep.
  const guest = Bun.spawn(["nsenter", "--target", String(stuck), "--pid", "sleep", "1000"]);
  while (childrenOf(guest.pid).length === 0) await Bun.sleep(1);
  try {
    guest.kill("SIGSTOP");
    // One that is still awake would reap it before it stops.
    while (!/\) T /.test(readFileSync(`/proc/${guest.pid}/stat`, "utf8"))) await Bun.sleep(1);
    process.kill(stuck, "SIGKILL");
    while (readProcess(stuck)?.argv.length !== 0) await Bun.sleep(1);
    const look = async () => {
      const before = performance.now();
      expect(await findByName("hf-nobody-g1")).toEqual([]);
      return performance.now() - before;
    };
    expect(await look()).toBeGreaterThan(90); // it has no arguments, as in the middle of an `exec`
    const later = [await look(), await look(), await look(), await look()];
    expect(Math.min(...later)).toBeLessThan(90); // a look that waits takes a hundred pauses of a millisecond
  } finally {
    guest.kill("SIGKILL");
    await Promise.all([guest.exited, outer.exited]);
  }
});

test.if(process.getuid?.() === 0)(
  "another user's process is none of ours, whatever it is called",
  async () => {
    const name = `hf-stranger-${process.pid}`;
    const stranger = ["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups"];
    const child = Bun.spawn([...stranger, "sh", "-c", "echo; read end", name], {
      stdin: "pipe",
      stdout: "pipe",
    });
    await child.stdout.getReader().read();
    expect(readProcess(child.pid)?.argv.at(-1)).toBe(name);
    expect(await findByName(name)).toEqual([]);
    child.stdin.end();
    await child.exited;
  },
);

test("only the beginning of what a process says of itself is read, however long it makes that", async () => {
  const name = `hf-long-${process.pid}`;
  const long = Array.from({ length: 12 }, () => "x".repeat(100_000));
  const child = Bun.spawn(["sh", "-c", "read end", name, ...long], { stdin: "pipe" });
  while (readProcess(child.pid)?.argv.includes(name) === false) await Bun.sleep(0);
  expect((await findByName(name)).map(({ pid, argv }) => [pid, argv])).toEqual([
    [child.pid, ["sh", "-c", "read end", name]],
  ]);
  child.stdin.end();
  await child.exited;
});

test("a pid that is used again is another process, and a zombie is none", async () => {
  const child = Bun.spawn(["sleep", "30"]);
  const known = readProcess(child.pid);
  if (known === undefined) throw new Error("not started");
  expect(isAlive(known)).toBe(true);
  expect(isAlive({ ...known, startTime: String(Number(known.startTime) - 1) })).toBe(false);
  child.kill("SIGKILL");
  await child.exited;
  expect(isAlive(known)).toBe(false);

  const parent = Bun.spawn(
    ["perl", "-e", "$| = 1; my $p = fork; exit unless $p; print qq($p\\n); sleep 30"],
    {
      stdout: "pipe",
    },
  );
  const { value } = await parent.stdout.getReader().read();
  const zombie = Number(new TextDecoder().decode(value));
  while (!/^\d+ \(perl\) Z/.test(readFileSync(`/proc/${zombie}/stat`, "utf8"))) await Bun.sleep(1);
  expect(readProcess(zombie)).toBeUndefined();
  parent.kill("SIGKILL");
  await parent.exited;
});
