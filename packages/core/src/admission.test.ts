import { expect, test } from "bun:test";
import { type AdmissionRules, defaultMinFreeDisk, refusalOf, type Usage } from "./admission.ts";
import type { Capacity } from "./provider.ts";

const GIB = 1024 ** 3;
const MIB = 1024 ** 2;
const disk = { sizeBytes: 100 * GIB, freeBytes: 50 * GIB, inodes: 1_000, freeInodes: 900 };
const measured: Capacity = { slots: null, memoryBytes: 1 * GIB, disk };
const rules: AdmissionRules = {
  tenantQuota: 3,
  slots: 10,
  minFreeDisk: defaultMinFreeDisk,
  measured,
  closedBecause: null,
};
const usage: Usage = { tenantInstances: 2, instances: 9, memoryBytes: 512 * MIB, diskBytes: 7 };
const wanted = { memoryBytes: 512 * MIB, diskBytes: 0 };

test("what just fits is admitted, and no limit is no limit", () => {
  expect(refusalOf(usage, wanted, rules)).toBeUndefined();
  const free = { ...rules, tenantQuota: null, slots: null, measured: { ...measured, memoryBytes: null } };
  const full = { tenantInstances: 1e6, instances: 1e6, memoryBytes: 1e15, diskBytes: 0 };
  expect(refusalOf(full, wanted, free)).toBeUndefined();
});

interface Case {
  usage?: Partial<Usage>;
  wanted?: Partial<typeof wanted>;
  rules?: Partial<AdmissionRules>;
  code: string;
  details: Record<string, unknown>;
}

const withDisk = (over: Partial<typeof disk>) => ({ measured: { ...measured, disk: { ...disk, ...over } } });

const refusals: Record<string, Case> = {
  "a tenant's quota comes first": {
    usage: { tenantInstances: 3, instances: 10 },
    rules: { closedBecause: "EROFS" },
    code: "quota_exceeded",
    details: { used: 3, quota: 3 },
  },
  "scenario 47: a closed host takes nothing new": {
    rules: { closedBecause: "ENOSPC: no space left" },
    code: "host_storage_unusable",
    details: { closedBecause: "ENOSPC: no space left" },
  },
  "all slots are taken": {
    usage: { instances: 10 },
    code: "capacity_exhausted",
    details: { resource: "slots", used: 10, capacity: 10, wanted: 1 },
  },
  "the backend's own slots count, if they are fewer": {
    rules: { measured: { ...measured, slots: 9 } },
    code: "capacity_exhausted",
    details: { resource: "slots", used: 9, capacity: 9, wanted: 1 },
  },
  "memory is promised, not measured": {
    wanted: { memoryBytes: 512 * MIB + 1 },
    code: "capacity_exhausted",
    details: { resource: "memory", used: 512 * MIB, capacity: GIB, wanted: 512 * MIB + 1 },
  },
  "scenario 46: a disk below its tenth is refused with the numbers": {
    rules: withDisk({ freeBytes: 10 * GIB - 1 }),
    code: "capacity_exhausted",
    details: {
      resource: "disk",
      freeBytes: 10 * GIB - 1,
      neededBytes: 10 * GIB,
      sizeBytes: 100 * GIB,
      promised: 7,
    },
  },
  "a small disk keeps two GiB": {
    rules: withDisk({ sizeBytes: 4 * GIB, freeBytes: 2 * GIB - 1 }),
    code: "capacity_exhausted",
    details: {
      resource: "disk",
      freeBytes: 2 * GIB - 1,
      neededBytes: 2 * GIB,
      sizeBytes: 4 * GIB,
      promised: 7,
    },
  },
  "and what is wanted must be there": {
    wanted: { diskBytes: 51 * GIB },
    code: "capacity_exhausted",
    details: {
      resource: "disk",
      freeBytes: 50 * GIB,
      neededBytes: 51 * GIB + 7,
      sizeBytes: 100 * GIB,
      promised: 7,
    },
  },
  "and what is promised to those that run": {
    usage: { diskBytes: 50 * GIB },
    wanted: { diskBytes: 1 },
    code: "capacity_exhausted",
    details: {
      resource: "disk",
      freeBytes: 50 * GIB,
      neededBytes: 50 * GIB + 1,
      sizeBytes: 100 * GIB,
      promised: 50 * GIB,
    },
  },
  "inodes run out before bytes": {
    rules: withDisk({ freeInodes: 49 }),
    code: "capacity_exhausted",
    details: { resource: "inodes", freeInodes: 49, inodes: 1_000, promised: 7 },
  },
};

test.each(Object.entries(refusals))("%s", (_, over) => {
  const refusal = refusalOf(
    { ...usage, ...over.usage },
    { ...wanted, ...over.wanted },
    { ...rules, ...over.rules },
  );
  expect(refusal).toMatchObject({ code: over.code, started: "no" });
  expect(refusal?.details).toEqual(over.details);
  expect(refusal?.hint).not.toBeEmpty();
});

test("a file system without a fixed number of inodes has enough of them", () => {
  expect(refusalOf(usage, wanted, { ...rules, ...withDisk({ inodes: 0, freeInodes: 0 }) })).toBeUndefined();
});
