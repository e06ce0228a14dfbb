import { afterEach, beforeEach, expect, test } from "bun:test";
import { Limits, Policy, SandboxSpec } from "@holdfast/protocol";
import { sameSpec } from "./refusals.ts";
import { TestWorld } from "./test-world.ts";

let world: TestWorld;
beforeEach(async () => {
  world = new TestWorld();
  await world.server.start();
});
afterEach(() => world.close());

const refusal = (promise: Promise<unknown>): Promise<string> =>
  promise.then(
    () => "not refused",
    ({ message }) => message,
  );

test("a name that has another spec: the message says in what they differ", async () => {
  await world.running("one", { lifetimeSeconds: 60 });
  const ensure = (wanted: object) => refusal(world.server.sandboxes.ensure("one", wanted, {}));
  expect([
    await ensure({ lifetimeSeconds: 61, network: "none" }),
    await ensure({ env: { LONG: "x".repeat(100) } }),
  ]).toEqual([
    'sandbox one exists, and is another: its network is not set, asked for was "none"; its lifetimeSeconds is 60, asked for was 61',
    "sandbox one exists, and is another: env differs",
  ]);
});

/** By its name: one that a sandbox has, and another. */
const fields: Record<string, [has: unknown, other: unknown]> = {
  provider: ["docker", "local"],
  image: ["debian:bookworm", "debian:trixie"],
  env: [{ A: "1" }, { A: "2" }],
  "limits.cpus": [1, 2],
  "limits.memoryMiB": [64, 128],
  "limits.pids": [32, 64],
  "limits.diskMiB": [16, 32],
  "limits.required": [true, false],
  network: ["none", "full"],
  user: ["root", "1000:1000"],
  readOnly: [true, false],
  mounts: [[{ source: "/data", target: "/a" }], [{ source: "/data", target: "/a", writable: true }]],
  tmpfs: [{ "/cache": 1 }, { "/cache": 2 }],
  runtime: ["runc", "runsc"],
  fromSnapshot: ["before", "after"],
  persistent: [true, false],
  lifetimeSeconds: [60, 61],
  onIdle: ["stop", "keep"],
  filesystem: ["persistent", "ephemeral"],
  maxLifetimeSeconds: [60, null],
  turnTimeoutSeconds: [60, 61],
  snapshotOnReap: [true, false],
  persistAcrossRestarts: [true, false],
};

/** As a request has it. */
function asked(of: "has" | "other", names: readonly string[]): Record<string, unknown> {
  const request: Record<string, unknown> = {};
  for (const name of names) {
    const value = fields[name]?.[of === "has" ? 0 : 1];
    const [first = "", limit] = name.split(".");
    if (limit === undefined) request[name] = value;
    else request[first] = { ...(request[first] as object), [limit]: value };
  }
  return request;
}

const isPolicy = (name: string) => name in Policy.shape;

test("every field of a spec and of a policy has its line in the table", () => {
  const { limits: _, ...spec } = SandboxSpec.shape;
  const limits = Object.keys(Limits.shape).map((name) => `limits.${name}`);
  const all = [...Object.keys(spec), ...limits, ...Object.keys(Policy.shape)];
  expect(Object.keys(fields).sort()).toEqual(all.sort());
});

test.each(Object.entries(fields))(
  "another %s is a conflict, and is all that is named",
  async (name, [has, other]) => {
    const holding = await world.running("one");
    const names = Object.keys(fields);
    const sandbox = {
      ...holding.sandbox,
      spec: SandboxSpec.parse(
        asked(
          "has",
          names.filter((one) => !isPolicy(one)),
        ),
      ),
      policy: { ...holding.sandbox.policy, ...asked("has", names.filter(isPolicy)) },
    };
    const found = { ...holding, sandbox };
    expect(sameSpec(found, asked("has", names))).toBe(found);

    const rest = names.filter((one) => one !== name);
    const changed = { ...asked("has", rest), ...asked("other", [name]) };
    const request = name.startsWith("limits.")
      ? { ...changed, limits: { ...(asked("has", rest).limits as object), ...(changed.limits as object) } }
      : changed;
    const conflict = (wanted: unknown) =>
      expect.objectContaining({
        code: "spec_conflict",
        details: { difference: { [name]: { has, wanted } } },
      });
    expect(() => sameSpec(found, request)).toThrow(conflict(other));
    // Of a policy, what is not asked for may be any.
    if (isPolicy(name)) expect(sameSpec(found, asked("has", rest))).toBe(found);
    else expect(() => sameSpec(found, asked("has", rest))).toThrow(conflict(null));
  },
);

test("a generation that is over: how it ended; one that it never was: which it is", async () => {
  await world.running("one");
  const remembering = (generation: number) => refusal(world.server.sandboxes.use("one", { generation }));
  expect(await remembering(7)).toBe("sandbox one is at generation 1, not 7");
  await world.server.sandboxes.stop("one");
  const ended = new Date(world.clock.wall()).toISOString();
  expect(await remembering(1)).toBe(`generation 1 of sandbox one has ended (stop_requested, at ${ended})`);
});
