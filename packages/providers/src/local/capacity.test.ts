import { expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { measureCapacity, ownGroupFiles, totalMemory } from "./capacity.ts";
import { findCgroupHost } from "./cgroup-host.ts";

const none = async () => ({ kind: "unavailable", detail: "no way" }) as const;

test("this machine has memory and a disk, and not more than it has", async () => {
  for (const host of [findCgroupHost, none]) {
    const { slots, memoryBytes, disk } = await measureCapacity(tmpdir(), host);
    expect(slots).toBe(null);
    expect(memoryBytes).toBeWithin(1, totalMemory(readFileSync("/proc/meminfo", "utf8")) + 1);
    expect(disk.freeBytes).toBeWithin(0, disk.sizeBytes + 1);
  }
});

test("scenario 47: what cannot be measured is unknown, with the reason", async () => {
  const gone = join(tmpdir(), "holdfast-no-such-data-dir");
  await expect(measureCapacity(gone, none)).rejects.toMatchObject({
    code: "capacity_unknown",
    message: expect.stringContaining("ENOENT"),
    retryable: true,
  });
  expect(() => totalMemory("MemFree: 12 kB\n")).toThrow(/how much memory/);
});

test.each([
  ["v2", "0::/a/b\n", ["", "/a", "/a/b"].map((group) => `/sys/fs/cgroup${group}/memory.max`)],
  ["v2, at the top", "0::/\n", ["/sys/fs/cgroup/memory.max"]],
  [
    "v1",
    "9:pids:/p\n4:cpu,memory:/m\n0::/\n",
    ["", "/m"].map((group) => `/sys/fs/cgroup/memory${group}/memory.limit_in_bytes`),
  ],
])("the limits above the server's own group: %s", (_, ownGroups, files) => {
  expect(ownGroupFiles(ownGroups)).toEqual(files);
});

test("a control group's limit counts where it is smaller", async () => {
  const parent = join(import.meta.dir, "../../fixtures/limited-group/holdfast");
  const host = async () => ({ kind: "v2", detail: "cgroup v2", parent }) as const;
  const { memoryBytes } = await measureCapacity(tmpdir(), host);
  expect(memoryBytes).toBe(4096);
});
