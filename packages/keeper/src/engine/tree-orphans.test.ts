import { afterAll, beforeAll, expect, test } from "bun:test";
import type { TestKeeper } from "../test-keeper.ts";
import { startPid1 } from "../test-pid1.ts";

let keeper: TestKeeper;
beforeAll(async () => {
  keeper = await startPid1();
});
afterAll(() => keeper[Symbol.asyncDispose]());

const exec = async (request: Record<string, unknown>) => (await keeper.call("/v1/exec", request)).body;
const count = async (program: string) =>
  Number((await exec({ command: `pgrep -fxc '${program}'; true` })).stdout);

/** Waits until so many run inside. */
async function until(program: string, wanted: number): Promise<void> {
  while ((await count(program)) !== wanted) await Bun.sleep(10);
}

// A new session, no parent, no environment: nothing that a program can change about itself says whose it is.
const hidden = (program: string) => `env -i setsid sh -c '${program} & ${program} & exit'`;

test.each([
  ["from a shell", `${hidden("sleep 701")}; sleep 100`, "sleep 701"],
  ["by two forks", `(${hidden("sleep 702")} &); sleep 100`, "sleep 702"],
  ["from a program without a shell", ["python3", "-c", daemonise("sleep 703")], "sleep 703"],
])(
  "what has hidden itself %s long before a timeout is ended with its command",
  async (_, command, program) => {
    const { kill } = await exec({ command, timeoutMs: 700 });
    expect(kill).toMatchObject({ survivors: [], unattributed: [] });
    expect(await count(program)).toBe(0);
  },
);

test("with others at work at the same time, each is ended with its own and nobody else", async () => {
  const start = (processId: string, program: string) =>
    keeper.call("/v1/processes", { command: `${hidden(program)}; sleep 100`, processId });
  const kill = async (id: string) => (await keeper.call(`/v1/processes/${id}/kill`, {})).body.status.kill;
  await Promise.all([start("p1", "sleep 711"), start("p2", "sleep 712"), start("p3", "sleep 713")]);
  await Promise.all([until("sleep 711", 2), until("sleep 712", 2), until("sleep 713", 2)]);
  expect(await kill("p2")).toMatchObject({ survivors: [], unattributed: [] });
  expect([await count("sleep 711"), await count("sleep 712"), await count("sleep 713")]).toEqual([2, 0, 2]);
  await Promise.all([kill("p1"), kill("p3")]);
  expect([await count("sleep 711"), await count("sleep 713")]).toEqual([0, 0]);
});

test("what an ended process left hidden is found, too", async () => {
  await keeper.call("/v1/processes", { command: hidden("sleep 721"), processId: "left" });
  await keeper.call("/v1/processes/left/wait");
  await until("sleep 721", 2);
  // More commands than there are tags: that of the left ones is not given to another.
  for (let i = 0; i < 60; i++) await exec({ command: ["true"] });
  const other = await exec({ command: "sleep 100", timeoutMs: 100 });
  expect(other.kill).toMatchObject({ killed: 1, unattributed: [] });
  expect(await count("sleep 721")).toBe(2);
  const { body } = await keeper.call("/v1/processes/left/kill", {});
  expect(body.status.kill).toEqual({ verified: "lineage", killed: 2, survivors: [], unattributed: [] });
});

test("what even takes off its tag is listed, not hidden and not guessed", async () => {
  const untagged = "env -i setsid sh -c 'echo 0 >/proc/self/oom_score_adj; sleep 731 & exit'";
  const { kill } = await exec({ command: `${untagged}; sleep 100`, timeoutMs: 500 });
  expect(kill).toMatchObject({
    survivors: [],
    unattributed: [{ pid: expect.any(Number), command: "sleep 731" }],
  });
  expect(await count("sleep 731")).toBe(1);
  await exec({ command: ["kill", String(kill.unattributed[0].pid)] });
});

function daemonise(program: string): string {
  const [name, argument] = program.split(" ");
  return `
import os, time
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        os.closerange(0, 100)
        os.execve("/usr/bin/${name}", ["${name}", "${argument}"], {})
    os._exit(0)
time.sleep(100)
`;
}
