import { copySizeOf, type NewLease, type SandboxRow, type Store } from "@holdfast/core";

/** From the reservation to an admitted keeper: longer than a ticket, so that a server that dies in it can be replaced. */
const STARTUP_DEADLINE_MS = 120_000;
/** A reservation that nobody has acted on by then is given up. */
const NOT_AFTER_MS = 60_000;
/** 10 MB/s: a disk that copies more slowly is out of order. */
const SLOWEST_COPY_BYTES_PER_MS = 10_000;
/** Of one that names no limit: what an idle sandbox costs, so that many small ones fit. */
const DEFAULT_MEMORY_BYTES = 32 * 1024 ** 2;
/** Room for its logs and its sessions' state; what its work writes shows in the measurement. */
const DEFAULT_DISK_BYTES = 64 * 1024 ** 2;

/** Ids and secrets, by what they are for. */
export type NewId = (
  kind: "sandbox" | "instance" | "secret" | "turn" | "claim" | "snapshot" | "port",
) => string;

/** The intent to launch an instance of this sandbox. */
export async function newLease(
  sandbox: Pick<SandboxRow, "id" | "tenantId" | "provider" | "spec" | "restoresFrom">,
  now: number,
  { store, newId }: { store: Store; newId: NewId },
): Promise<NewLease> {
  const { restoresFrom } = sandbox;
  const snapshot = restoresFrom === null ? undefined : await store.snapshot(restoresFrom);
  const copyBytes = snapshot === undefined ? 0 : copySizeOf(snapshot);
  const { memoryMiB, diskMiB } = sandbox.spec.limits ?? {};
  return {
    instanceId: newId("instance"),
    installationId: await store.installationId(),
    sandboxId: sandbox.id,
    tenantId: sandbox.tenantId,
    provider: sandbox.provider,
    secret: newId("secret"),
    reservation: {
      memoryBytes: memoryMiB === undefined ? DEFAULT_MEMORY_BYTES : memoryMiB * 1024 ** 2,
      diskBytes: (diskMiB === undefined ? DEFAULT_DISK_BYTES : diskMiB * 1024 ** 2) + copyBytes,
    },
    createdAt: now,
    notAfter: now + NOT_AFTER_MS,
    startupDeadlineAt: now + STARTUP_DEADLINE_MS + Math.ceil(copyBytes / SLOWEST_COPY_BYTES_PER_MS),
  };
}
