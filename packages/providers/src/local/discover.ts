import type { Found, InstanceRef, SandboxRef } from "@holdfast/core";
import { listDisks } from "./disk.ts";
import { instanceDirs, nameOf, parseRef, readIdentity } from "./identity.ts";
import { INSTANCE_VARIABLE } from "./inside.ts";
import type { Layout } from "./layout.ts";
import { findKeepers, readVariable } from "./processes.ts";

/** Everything of this installation: instances by directory or by running keeper, and disks. */
export async function discoverAll(installationId: string, layout: Layout): Promise<Found[]> {
  const instances = (await allInstances(layout)).filter((ref) => ref.installationId === installationId);
  const disks = (await listDisks(layout)).filter(({ ref }) => ref.installationId === installationId);
  return [
    ...instances.map((ref): Found => ({ kind: "instance", ref })),
    ...disks.map(({ ref }): Found => ({ kind: "disk", ref })),
  ];
}

/** The instances of one sandbox, of whatever generation. */
export async function instancesOf(sandbox: SandboxRef, layout: Layout): Promise<InstanceRef[]> {
  return (await allInstances(layout)).filter(
    (ref) => ref.sandboxId === sandbox.sandboxId && ref.installationId === sandbox.installationId,
  );
}

async function allInstances(layout: Layout): Promise<InstanceRef[]> {
  const refs = new Map<string, InstanceRef>();
  for (const ref of [...(await runningRefs()), ...(await refsOnDisk(layout))]) {
    refs.set(`${nameOf(ref)} ${ref.instanceId} ${ref.installationId}`, ref);
  }
  return [...refs.values()];
}

async function refsOnDisk(layout: Layout): Promise<InstanceRef[]> {
  const refs: InstanceRef[] = [];
  for (const dir of await instanceDirs(layout)) {
    const identity = await readIdentity(dir);
    if (identity !== undefined) refs.push(identity.ref);
  }
  return refs;
}

/** Keepers carry who they are, so that one whose directory somebody has removed is found, too. */
async function runningRefs(): Promise<InstanceRef[]> {
  return (await findKeepers()).flatMap(({ pid, argv }) => {
    const marker = readVariable(pid, INSTANCE_VARIABLE);
    if (marker === undefined) return []; // it ended meanwhile
    const ref = parseRef(JSON.parse(marker));
    return argv.at(-1) === nameOf(ref) ? [ref] : [];
  });
}
