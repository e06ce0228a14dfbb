import { expect, test } from "bun:test";
import { AdmitRequest, ClaimFenceRequest, KeeperBoot, QuiesceRequest } from "./keeper-start.ts";
import type { Checker } from "./plain-check.ts";
import { tellIssues } from "./plain-check.ts";

const boot = {
  secret: "a-secret-of-at-least-32-characters",
  sandboxId: "sbx-1",
  instanceId: "instance-1",
  generation: 1,
  socketPath: "/run/keeper.sock",
  stateDir: "/state",
  env: { PATH: "/bin", LANG: null },
  cwd: "/",
};
const admit = { instanceId: "instance-1", generation: 1, fence: 2 };
const admitted = {
  ...admit,
  lifetimeSeconds: 1800,
  maxLifetimeSeconds: null,
  orphanLimitSeconds: 86_400,
  spare: false,
  env: {},
};

test.each<[string, Checker<unknown>, unknown, unknown]>([
  ["a boot", KeeperBoot, boot, boot],
  [
    "a boot with all there is",
    KeeperBoot,
    { ...boot, maxProcesses: 1, memoryCgroupDir: "/cg" },
    { ...boot, maxProcesses: 1, memoryCgroupDir: "/cg" },
  ],
  ["an admission that leaves all to the defaults", AdmitRequest, admit, admitted],
  ["an admission of a later version", AdmitRequest, { ...admit, mood: "good" }, admitted],
  [
    "an admission that says all",
    AdmitRequest,
    {
      ...admit,
      lifetimeSeconds: 0.5,
      maxLifetimeSeconds: 9,
      orphanLimitSeconds: 1,
      spare: true,
      env: { A: null },
    },
    {
      ...admit,
      lifetimeSeconds: 0.5,
      maxLifetimeSeconds: 9,
      orphanLimitSeconds: 1,
      spare: true,
      env: { A: null },
    },
  ],
  ["quiesce", QuiesceRequest, { lifetimeMs: 0 }, { lifetimeMs: 0 }],
  ["a claim's fence", ClaimFenceRequest, { fence: 0, required: true }, { fence: 0, required: true }],
])("%s is taken", (_, shape, given, taken) => {
  expect(shape.safeParse(given)).toStrictEqual({ success: true, data: taken });
});

const notString = "Invalid input: expected string, received";
const notInt = "Invalid input: expected int, received";

test.each<[string, Checker<unknown>, unknown, string]>([
  ["no object", KeeperBoot, [boot], "Invalid input: expected object, received array"],
  ["nothing", AdmitRequest, null, "Invalid input: expected object, received null"],
  [
    "a short secret",
    KeeperBoot,
    { ...boot, secret: "short" },
    "secret: Too small: expected string to have >=32 characters",
  ],
  [
    "no processes at all",
    KeeperBoot,
    { ...boot, maxProcesses: 0 },
    "maxProcesses: Too small: expected number to be >0",
  ],
  [
    "a half generation and an environment of numbers",
    KeeperBoot,
    { ...boot, generation: 1.5, env: { A: 1, B: "b" } },
    `generation: ${notInt} number; env.A: ${notString} number`,
  ],
  [
    "an environment that is none",
    KeeperBoot,
    { ...boot, env: [] },
    "env: Invalid input: expected record, received array",
  ],
  ["what a boot has not", KeeperBoot, { ...boot, user: 1, group: 1 }, 'Unrecognized keys: "user", "group"'],
  [
    "an empty admission",
    AdmitRequest,
    {},
    `instanceId: ${notString} undefined; generation: ${notInt} undefined; fence: ${notInt} undefined`,
  ],
  [
    "times that are none",
    AdmitRequest,
    { ...admit, lifetimeSeconds: 0, maxLifetimeSeconds: -1, orphanLimitSeconds: null },
    "lifetimeSeconds: Too small: expected number to be >0; maxLifetimeSeconds: Too small: expected number to be >0; " +
      "orphanLimitSeconds: Invalid input: expected number, received null",
  ],
  [
    "a number that JSON has and nobody means",
    AdmitRequest,
    { ...admit, lifetimeSeconds: Number.POSITIVE_INFINITY, fence: 2 ** 60 },
    `fence: ${notInt} number; lifetimeSeconds: Invalid input: expected number, received number`,
  ],
  [
    "a spare by half",
    AdmitRequest,
    { ...admit, spare: 1 },
    "spare: Invalid input: expected boolean, received number",
  ],
  [
    "less than no time",
    QuiesceRequest,
    { lifetimeMs: -1 },
    "lifetimeMs: Too small: expected number to be >=0",
  ],
  ["more than a quiesce", QuiesceRequest, { lifetimeMs: 1, now: true }, 'Unrecognized key: "now"'],
  [
    "a fence below zero",
    ClaimFenceRequest,
    { fence: -1 },
    "fence: Too small: expected number to be >=0; required: Invalid input: expected boolean, received undefined",
  ],
])("%s is refused, with all that is wrong", (_, shape, given, why) => {
  const result = shape.safeParse(given);
  expect(result.success ? "taken" : tellIssues(result.error.issues)).toBe(why);
});

test("what throws names every wrong field", () => {
  expect(() => KeeperBoot.parse({ ...boot, secret: 1, cwd: 2 })).toThrow(
    `secret: ${notString} number; cwd: ${notString} number`,
  );
});

test("a name that would change what the environment is, is left out", () => {
  const given = JSON.parse(JSON.stringify(admit).replace("}", ',"env":{"__proto__":null,"A":"a"}}'));
  const { env } = AdmitRequest.parse(given);
  expect([Object.keys(env), Object.getPrototypeOf(env)]).toEqual([["A"], Object.prototype]);
});
