import type { LeaseInfo, ProviderInfo, Sandbox, SweepReport } from "@holdfast/protocol";

export const fakeSweep: SweepReport = {
  dryRun: true,
  providers: [
    {
      provider: "fake",
      found: { instances: 2, disks: 1 },
      adopted: 1,
      foreign: 0,
      actions: [{ do: "stop", sandboxId: "sbx9", instance: "ins9", because: "orphan of 2.1 lifetimes" }],
    },
  ],
};

export const fakeProvider: ProviderInfo = {
  provider: "fake",
  isDefault: true,
  state: "closed",
  reason: "the file system is read-only",
  capabilities: {
    persistentDisk: true,
    images: false,
    settleMs: 0,
    pause: true,
    pauseDetail: "by the kernel",
    networks: ["none", "full"],
    networkDetail: "out, and never to this machine",
    limits: {
      enforced: false,
      detail: "no control groups",
      disk: { enforced: false, detail: "no quotas" },
    },
    users: false,
    readOnly: false,
    tmpfs: false,
    mounts: [],
    runtimes: [],
  },
  capacity: {
    slots: { used: 3, total: 10 },
    memory: { used: 512 * 1024 ** 2, total: null },
    disk: { unknown: "statfs failed" },
  },
};

/** Every other one is gone. */
export function leaseOf({ id, generation, provider, createdAt }: Sandbox, index: number): LeaseInfo {
  const common = { sandboxId: id, provider, generation, fence: 1, origin: "launch", createdAt } as const;
  const instanceId = `ins${index + 1}`;
  if (index % 2 === 0) return { ...common, instanceId, phase: "live", attempts: 0 };
  const evidence = { kind: "exited", at: createdAt, detail: "pid 7 is gone" };
  return { ...common, instanceId, phase: "gone", attempts: 1, evidence };
}
