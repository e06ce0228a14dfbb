import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { Machine } from "../../fixtures/machine.ts";
import { planLimits } from "./cgroup.ts";
import { findCgroupHost } from "./cgroup-host.ts";
import { readInhabitant } from "./identity.ts";
import { layoutOf } from "./layout.ts";

const none = { kind: "unavailable", detail: "no way" } as const;
const v2 = { kind: "v2", detail: "cgroup v2", parent: "/cg/holdfast" } as const;

test("limits that cannot be enforced are reported, and refused where they are required", () => {
  expect(planLimits("hf-a-g1", { cpus: 1 }, none)).toEqual({
    report: { state: "unavailable", detail: "no way" },
    groups: [],
    joins: [],
    startIn: undefined,
    prefix: [],
    memoryDir: undefined,
  });
  expect(() => planLimits("hf-a-g1", { required: true }, none)).toThrow(/cannot be enforced.*no way/);
  const withoutCpu = { kind: "v1", detail: "cgroup v1", parents: { pids: "/p" } } as const;
  expect(() => planLimits("hf-a-g1", { cpus: 1, required: true }, withoutCpu)).toThrow(/cpu controller/);
  expect(planLimits("hf-a-g1", {}, withoutCpu).report.state).toBe("enforced");
  expect(planLimits("hf-a-g1", { diskMiB: 64 }, v2).report).toMatchObject({ state: "partial" });
  expect(() => planLimits("hf-a-g1", { diskMiB: 64, required: true }, v2)).toThrow(/folders/);
});

test("with cgroup v2 one group has every limit", () => {
  expect(planLimits("hf-a-g1", { cpus: 1.5, memoryMiB: 64, pids: 100 }, v2)).toEqual({
    report: { state: "enforced", detail: "pids 100, memory 64 MiB, cpus 1.5, by cgroup v2" },
    groups: [
      {
        dir: "/cg/holdfast/hf-a-g1",
        settings: {
          "pids.max": "164",
          "memory.max": "67108864",
          "memory.swap.max": "0",
          "cpu.max": "150000 100000",
        },
      },
    ],
    joins: [],
    startIn: "/cg/holdfast/hf-a-g1",
    prefix: [],
    memoryDir: "/cg/holdfast/hf-a-g1",
  });
});

const host = await findCgroupHost();
describe.if(host.kind === "v1" || host.kind === "v2")(`limits enforced by ${host.detail}`, () => {
  let machine: Machine;
  beforeAll(async () => {
    machine = await Machine.open();
  });
  afterAll(() => machine.close());

  test("a program that takes too much memory is ended, the keeper is not, and the counter can be read inside", async () => {
    const ref = await machine.launch({ network: "none", limits: { memoryMiB: 128, required: true } });
    const counter =
      "cat /.holdfast/cgroup/memory.oom_control /.holdfast/cgroup/memory.events 2> /dev/null | grep '^oom_kill '";
    expect((await machine.run(ref, "sh", "-c", counter)).stdout).toBe("oom_kill 0\n");
    const greedy = await machine.run(
      ref,
      "sh",
      "-c",
      "echo 1000 > /proc/self/oom_score_adj; exec perl -e '$x = \"x\" x 512_000_000'",
    );
    expect(greedy.exitCode).toBe(137);
    expect((await machine.run(ref, "sh", "-c", counter)).stdout).toBe("oom_kill 1\n");
    await machine.clear();
  });

  test("a fork bomb stops at the limit, and the sandbox is usable afterwards", async () => {
    const ref = await machine.launch({ network: "none", limits: { pids: 40 } });
    const bomb =
      "my $n = 0; while (1) { my $p = fork; last unless defined $p; if (!$p) { sleep 1; exit } $n++ } 1 while wait > 0; print $n";
    const forked = Number((await machine.run(ref, "perl", "-e", bomb)).stdout);
    expect(forked).toBeGreaterThan(39);
    expect(forked).toBeLessThan(40 + 64);
    expect((await machine.run(ref, "echo", "usable")).stdout).toBe("usable\n");
    await machine.clear();
  });

  test("processor time is limited, for the whole instance", async () => {
    const ref = await machine.launch({ network: "none", limits: { cpus: 0.2 } });
    const burn = "my $end = time + 2; while (time < $end) {} my @t = times; print $t[0] + $t[1]";
    const seconds = Number((await machine.run(ref, "perl", "-e", burn)).stdout);
    expect(seconds).toBeLessThan(0.8);
    await machine.clear();
  });

  test("every process of the instance is inside, also without any wish of the user", async () => {
    const ref = await machine.launch({ network: "none" });
    const inhabitant = await readInhabitant(layoutOf(machine.dataDir), ref);
    if (inhabitant.kind !== "known") throw new Error(`the instance is ${inhabitant.kind}`);
    const { identity } = inhabitant;
    const pid = await machine.keeperPid(ref);
    for (const group of identity.cgroups) {
      expect(readFileSync(join(group, "cgroup.procs"), "utf8").split("\n")).toContain(String(pid));
    }
    expect(identity.limits).toEqual({ state: "enforced", detail: `pids 4096 (default), by ${host.detail}` });
    await machine.clear();
  });
});
