import { HoldfastError } from "@holdfast/protocol";
import type { Reservation } from "./lease.ts";
import type { Capacity } from "./provider.ts";

/** What may be used, and what was measured just before. Compared with the rows in the transaction that adds one. */
export interface AdmissionRules {
  /** Instances of one tenant that are not gone. */
  readonly tenantQuota: number | null;
  /** Instances on this provider that are not gone. */
  readonly slots: number | null;
  readonly minFreeDisk: MinFreeDisk;
  readonly measured: Capacity;
  /** Why the provider takes no new instance at all. */
  readonly closedBecause: string | null;
  /** Nobody asked for this one: it is taken only where another like it would still find room. */
  readonly leavesRoom?: boolean;
}

export interface MinFreeDisk {
  readonly bytes: number;
  /** Of the file system's size, 0 to 1. */
  readonly share: number;
  readonly inodeShare: number;
}

export const defaultMinFreeDisk: MinFreeDisk = { bytes: 2 * 1024 ** 3, share: 0.1, inodeShare: 0.05 };

/** What the rows hold already. Debts count against the provider, because they may still run, but not against a tenant. */
export interface Usage {
  readonly tenantInstances: number;
  readonly instances: number;
  readonly memoryBytes: number;
  readonly diskBytes: number;
}

/** `undefined` if there is room; else why there is not, with the numbers. Nothing is destroyed to make room here. */
export function refusalOf(
  held: Usage,
  wanted: Reservation,
  rules: AdmissionRules,
): HoldfastError | undefined {
  const usage = rules.leavesRoom === true ? without(held, wanted, -1) : held;
  return (
    overQuota(usage, rules) ??
    closed(rules) ??
    noSlot(usage, rules) ??
    noMemory(usage, wanted, rules) ??
    noDisk(usage, wanted, rules)
  );
}

/** What is held when `count` such reservations are not. The tenant's own are as they are. */
export function without(usage: Usage, { memoryBytes, diskBytes }: Reservation, count: number): Usage {
  return {
    ...usage,
    instances: usage.instances - count,
    memoryBytes: usage.memoryBytes - count * memoryBytes,
    diskBytes: usage.diskBytes - count * diskBytes,
  };
}

function overQuota({ tenantInstances }: Usage, { tenantQuota }: AdmissionRules): HoldfastError | undefined {
  if (tenantQuota === null || tenantInstances < tenantQuota) return undefined;
  return new HoldfastError("quota_exceeded", `${tenantInstances} of ${tenantQuota} sandboxes are in use`, {
    hint: "stop or delete one that you no longer need, or have the quota raised",
    details: { used: tenantInstances, quota: tenantQuota },
    started: "no",
  });
}

function closed({ closedBecause }: AdmissionRules): HoldfastError | undefined {
  if (closedBecause === null) return undefined;
  return new HoldfastError("host_storage_unusable", `no new sandbox is taken here: ${closedBecause}`, {
    hint: "the operator must repair the file system; what runs goes on running",
    details: { closedBecause },
    started: "no",
  });
}

function noSlot({ instances }: Usage, { slots, measured }: AdmissionRules): HoldfastError | undefined {
  const limit = smaller(slots, measured.slots);
  if (limit === null || instances < limit) return undefined;
  return exhausted(`all ${limit} slots are taken`, {
    resource: "slots",
    used: instances,
    capacity: limit,
    wanted: 1,
  });
}

function noMemory(
  { memoryBytes }: Usage,
  wanted: Reservation,
  { measured }: AdmissionRules,
): HoldfastError | undefined {
  const capacity = measured.memoryBytes;
  if (capacity === null || memoryBytes + wanted.memoryBytes <= capacity) return undefined;
  return exhausted(
    `${mib(memoryBytes)} of ${mib(capacity)} of memory are promised already, and ${mib(wanted.memoryBytes)} more are wanted`,
    {
      resource: "memory",
      used: memoryBytes,
      capacity,
      wanted: wanted.memoryBytes,
    },
  );
}

function noDisk(usage: Usage, wanted: Reservation, rules: AdmissionRules): HoldfastError | undefined {
  const promised = usage.diskBytes + wanted.diskBytes;
  const shortage = diskShortage(promised, rules.measured, rules.minFreeDisk);
  return shortage === undefined
    ? undefined
    : exhausted(shortage.text, { ...shortage.numbers, promised: usage.diskBytes });
}

/** There must be room for what is promised, as if nothing of it were written yet, and never less than the floor. */
export function diskShortage(
  promisedBytes: number,
  { disk }: Capacity,
  min: MinFreeDisk,
): { text: string; numbers: Record<string, unknown> } | undefined {
  const needed = Math.max(min.bytes, disk.sizeBytes * min.share, promisedBytes);
  if (disk.freeBytes < needed) {
    return {
      text: `${mib(disk.freeBytes)} of disk are free, and ${mib(needed)} must be`,
      numbers: {
        resource: "disk",
        freeBytes: disk.freeBytes,
        neededBytes: needed,
        sizeBytes: disk.sizeBytes,
      },
    };
  }
  // Some file systems have no fixed number of inodes, and say 0.
  if (disk.inodes > 0 && disk.freeInodes < disk.inodes * min.inodeShare) {
    return {
      text: `${disk.freeInodes} inodes are free, and ${Math.ceil(disk.inodes * min.inodeShare)} must be`,
      numbers: { resource: "inodes", freeInodes: disk.freeInodes, inodes: disk.inodes },
    };
  }
  return undefined;
}

function exhausted(why: string, details: Record<string, unknown>): HoldfastError {
  return new HoldfastError("capacity_exhausted", `there is no room for another sandbox: ${why}`, {
    hint: "stop a sandbox that is not needed, try again later, or wait in line for room (?queue=SECONDS, --queue 60s)",
    details,
    started: "no",
  });
}

function smaller(a: number | null, b: number | null): number | null {
  if (a === null || b === null) return a ?? b;
  return Math.min(a, b);
}

function mib(bytes: number): string {
  return `${Math.round(bytes / 1024 ** 2)} MiB`;
}
