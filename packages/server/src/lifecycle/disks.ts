import { type Holding, patientMs, savesFiles } from "@holdfast/core";
import { type EffectDeps, isUnreachable, messageOf, providerOf } from "./effects.ts";
import { type Shift, TicketLost } from "./shift.ts";

/** A large tree takes more than one call: what was removed stays removed. */
const DISK_CALL_MS = 40_000;
/** How often to look whether the copy of a disk is made that must be there before the disk goes. */
const COPY_LOOK_MS = 500;
/** Nothing that was ever sent for a sandbox arrives so late, and no client remembers a generation for longer. */
const TOMBSTONE_MS = 30 * 86_400_000;

export async function removeDisk(holding: Holding, shift: Shift, deps: EffectDeps): Promise<void> {
  const { store, hosts } = deps;
  const { sandbox } = holding;
  try {
    if (savesFiles(sandbox) && !(await deps.haveCopy(holding)))
      return await waitForCopy(holding, shift, deps);
    await shift.prepare(DISK_CALL_MS);
    const ref = { installationId: await store.installationId(), sandboxId: sandbox.id };
    const seen = await shift.act({ ms: DISK_CALL_MS }, (signal) =>
      providerOf(sandbox, deps).removeDisk(ref, signal),
    );
    await hosts.answered(sandbox.provider);
    if (seen.state === "present") throw new Error(seen.detail);
    const settled = { hasDisk: false, diskRetryAt: null, diskAttempts: 0 };
    const told = sandbox.diskAttempts > 0 ? { failure: null } : {};
    const entries = [{ type: "disk_removed", detail: { what: seen.detail } }];
    await store.save(holding, { sandbox: { ...settled, ...told }, entries }, shift.ticket);
  } catch (error) {
    if (error instanceof TicketLost) throw error;
    await missed(holding, { error, shift }, deps);
  }
}

/** It is being made, which was begun just now or before: what is to go stays until it is there. */
async function waitForCopy(holding: Holding, shift: Shift, { store }: EffectDeps): Promise<void> {
  const diskRetryAt = (await store.now()) + COPY_LOOK_MS;
  await store.save(holding, { sandbox: { diskRetryAt } }, shift.ticket);
}

async function missed(
  holding: Holding,
  { error, shift }: { error: unknown; shift: Shift },
  { store, hosts, log, random }: EffectDeps,
): Promise<void> {
  const failure = messageOf(error);
  // A backend that cannot be reached was not asked.
  const diskAttempts = holding.sandbox.diskAttempts + (isUnreachable(error) ? 0 : 1);
  log.error("disk not removed", { sandbox: holding.sandboxId, error: failure, attempts: diskAttempts });
  if (isUnreachable(error)) await hosts.missed(holding.sandbox.provider, error);
  const diskRetryAt = (await store.now()) + patientMs(diskAttempts, random());
  const detail = {
    error: failure,
    attempts: diskAttempts,
    nextAttemptAt: new Date(diskRetryAt).toISOString(),
  };
  await store.save(
    holding,
    {
      sandbox: { diskRetryAt, diskAttempts, failure },
      entries: [{ type: "disk_not_removed", detail }],
    },
    shift.ticket,
  );
}

/** Neither instance nor disk is left: its tombstone takes the place of its rows. */
export async function bury(holding: Holding, shift: Shift, { store }: EffectDeps): Promise<void> {
  const keepUntil = holding.readAt + TOMBSTONE_MS;
  await store.bury(holding, { keepUntil, ticket: shift.ticket });
}
