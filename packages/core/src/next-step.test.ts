import { expect, test } from "bun:test";
import { continuityOf, type Holding, type Lease, type SandboxRow, stateOf } from "./lease.ts";
import { nextStep, type Step } from "./next-step.ts";

const NOW = 1_000;

const cases: [
  string,
  Partial<SandboxRow>,
  Partial<Lease> | undefined,
  { connected?: boolean },
  Partial<Step>,
][] = [
  ["nothing launches without demand", {}, undefined, {}, { do: "rest" }],
  [
    "a deleted sandbox without an instance loses its disk",
    { desired: "deleted" },
    undefined,
    {},
    { do: "remove-disk" },
  ],
  [
    "but not before its next try",
    { desired: "deleted", dueAt: 2_000 },
    undefined,
    {},
    { do: "wait", until: 2_000 },
  ],
  [
    "a clock that was put back does not put off a deletion",
    { desired: "deleted", dueAt: NOW + 3_600_000 },
    undefined,
    {},
    { do: "remove-disk" },
  ],
  ["nor a stop", {}, { phase: "stop_due", nextAttemptAt: NOW + 3_600_000 }, {}, { do: "stop" }],
  ["a reservation is launched", {}, { phase: "reserved" }, {}, { do: "launch" }],
  ["an unwanted reservation is dropped", { desired: "stopped" }, { phase: "reserved" }, {}, { do: "drop" }],
  ["a launch that was cut off is made again", {}, { phase: "creating" }, {}, { do: "launch" }],
  [
    "until its deadline",
    {},
    { phase: "creating", startupDeadlineAt: NOW },
    {},
    { do: "order-stop", because: "startup_deadline" },
  ],
  [
    "deleting wins over creating",
    { desired: "deleted" },
    { phase: "creating" },
    {},
    { do: "order-stop", because: "delete_requested" },
  ],
  ["a started one is connected", {}, { phase: "starting" }, {}, { do: "connect" }],
  ["after its backoff", {}, { phase: "starting", nextAttemptAt: 1_500 }, {}, { do: "wait", until: 1_500 }],
  [
    "and given up at the deadline",
    {},
    { phase: "starting", startupDeadlineAt: 999 },
    {},
    { do: "order-stop", because: "startup_deadline" },
  ],
  ["a live one with a line rests", {}, { phase: "live" }, { connected: true }, { do: "rest" }],
  ["a live one without a line is looked at", {}, { phase: "live" }, {}, { do: "connect" }],
  [
    "a live one past its startup deadline still lives",
    {},
    { phase: "live", startupDeadlineAt: 1 },
    { connected: true },
    { do: "rest" },
  ],
  [
    "an unwanted live one is stopped",
    { desired: "stopped" },
    { phase: "live" },
    { connected: true },
    { do: "order-stop", because: "stop_requested" },
  ],
  ["a stop that is due is made", {}, { phase: "stop_due" }, {}, { do: "stop" }],
  [
    "not before its backoff",
    {},
    { phase: "stop_due", nextAttemptAt: 1_001 },
    {},
    { do: "wait", until: 1_001 },
  ],
  ["a stop that was cut off is made again", {}, { phase: "stopping" }, {}, { do: "stop" }],
];

test.each(cases)("%s", (_, sandbox, lease, { connected = false }, expected) => {
  expect(nextStep(holding(sandbox, lease), { connected, now: NOW })).toMatchObject(expected);
});

test("the API's word for each phase", () => {
  const states = (["reserved", "creating", "starting", "live", "stop_due", "stopping"] as const).map(
    (phase) => stateOf(holding({}, { phase })),
  );
  expect(states).toEqual(["creating", "creating", "creating", "running", "stopping", "stopping"]);
  expect(stateOf(holding({}, undefined))).toBe("stopped");
  expect(stateOf(holding({ launchFailures: 3 }, undefined))).toBe("failed");
  expect(stateOf(holding({ desired: "deleted" }, { phase: "live" }))).toBe("deleting");
});

test("continuity compares with what is remembered, else with the generation before", () => {
  expect([continuityOf(1), continuityOf(2), continuityOf(2, 2), continuityOf(3, 2)]).toEqual([
    "fresh",
    "same-filesystem",
    "same-process",
    "same-filesystem",
  ]);
});

function holding(sandbox: Partial<SandboxRow>, lease: Partial<Lease> | undefined): Holding {
  return {
    sandbox: { desired: "active", dueAt: null, launchFailures: 0, generation: 1, ...sandbox } as SandboxRow,
    lease: lease && ({ nextAttemptAt: null, startupDeadlineAt: 60_000, ...lease } as Lease),
  };
}
