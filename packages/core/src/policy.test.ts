import { expect, test } from "bun:test";
import type { Policy } from "@holdfast/protocol";
import { policyOf } from "./policy.ts";

const plain: Policy = {
  persistent: true,
  filesystem: "persistent",
  onIdle: "stop",
  lifetimeSeconds: 1800,
  maxLifetimeSeconds: null,
  turnTimeoutSeconds: 3600,
  persistAcrossRestarts: true,
};

const cases: [Partial<Policy>, Partial<Policy>][] = [
  [{}, {}],
  [{ lifetimeSeconds: 60, maxLifetimeSeconds: 90, turnTimeoutSeconds: 30 }, {}],
  [{ onIdle: "keep" }, {}],
  [{ onIdle: "remove" }, {}],
  [{ filesystem: "ephemeral" }, { onIdle: "remove" }],
  [{ filesystem: "ephemeral", onIdle: "keep" }, {}],
  [{ persistent: false }, { filesystem: "ephemeral", onIdle: "remove" }],
  [{ persistent: false, onIdle: "keep" }, { filesystem: "ephemeral" }],
  [{ persistent: false, filesystem: "persistent" }, { onIdle: "remove" }],
  [{ persistent: false, filesystem: "persistent", onIdle: "stop" }, {}],
];

test.each(cases)("%j is %j besides", (asked, implied) => {
  expect(policyOf(asked)).toEqual({ ...plain, ...asked, ...implied });
});

test("to stop what keeps nothing is refused, whether it was said or is implied", () => {
  for (const asked of [{ filesystem: "ephemeral" }, { persistent: false }] as const) {
    expect(() => policyOf({ ...asked, onIdle: "stop" })).toThrow(
      expect.objectContaining({ code: "invalid_argument", hint: expect.stringContaining("persistent") }),
    );
  }
});
