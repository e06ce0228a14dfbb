import { afterEach, beforeEach, expect, test } from "bun:test";
import { HoldfastError } from "@holdfast/protocol";
import { silentLog } from "../log.ts";
import { Hosts } from "./hosts.ts";
import { TestWorld } from "./test-world.ts";

let world: TestWorld;
let hosts: Hosts;
beforeEach(() => {
  world = new TestWorld();
  hosts = new Hosts({ store: world.store, random: () => 0.5, log: silentLog });
});
afterEach(() => world.close());

const away = new HoldfastError("provider_unavailable", "connection refused");
const untouched = {
  provider: "fake",
  failures: 0,
  nextProbeAt: null,
  lastError: null,
  lastSeenAt: null,
  closedBecause: null,
};

test("three calls that could not be made are one too many, and one answer is enough", async () => {
  for (const failures of [1, 2]) {
    await hosts.missed("fake", away);
    expect(hosts.get("fake")).toEqual({ ...untouched, failures, lastError: "connection refused" });
    expect(hosts.unreachable()).toEqual([]);
  }
  await hosts.missed("fake", away);
  expect(hosts.unreachable()).toEqual(["fake"]);
  expect(() => hosts.assertReachable("fake")).toThrow(
    expect.objectContaining({ code: "provider_unavailable", started: "no" }),
  );
  await hosts.answered("fake");
  expect(hosts.get("fake")).toEqual(untouched);
  hosts.assertReachable("fake");
});

test("L5: the probes of one that stays away come ever more slowly", async () => {
  const waits: number[] = [];
  for (let i = 0; i < 11; i++) {
    await hosts.missed("fake", away);
    const { nextProbeAt } = hosts.get("fake");
    if (nextProbeAt !== null) waits.push((nextProbeAt - world.clock.wall()) / 1000);
  }
  expect(waits).toEqual([1, 2, 4, 8, 16, 32, 60, 60, 60]);
});

test("what one server found out, another reads; and it survives a restart", async () => {
  await hosts.close("fake", new HoldfastError("host_storage_unusable", "EROFS"));
  const other = new Hosts({ store: world.store, random: () => 0.5, log: silentLog });
  await other.read();
  expect(other.get("fake")).toEqual({ ...untouched, closedBecause: "EROFS" });
  await other.reopen("fake");
  expect(other.get("fake")).toEqual(untouched);
});
