import { type Client, type CreateSandbox, Snapshot } from "holdfast";
import { byPrefix, unlessNotFound } from "./find-sandbox.ts";

/** The snapshot that is meant by a name, an id, or the beginning of an id that only one has. */
export async function findSnapshot(client: Client, meant: string): Promise<Snapshot> {
  const found = await Snapshot.get(meant, { client }).catch(unlessNotFound);
  if (found !== undefined) return found;
  const all = await Snapshot.list({ client });
  const names = all.map(({ name }) => name);
  const ids = all.map(({ id }) => id);
  const id = byPrefix(ids, meant, { what: "snapshot", list: "holdfast snapshot ls", names });
  return Snapshot.get(id, { client });
}

/**
 * The same spec; the beginning of a snapshot's id is made whole. A name stays, and so does one that is gone: the sandbox
 * that began with it may be there, and is found by the same spec.
 */
export async function withSnapshotFound(client: Client, spec: CreateSandbox): Promise<CreateSandbox> {
  const { fromSnapshot } = spec;
  if (fromSnapshot === undefined) return spec;
  const found = await findSnapshot(client, fromSnapshot).catch(unlessNotFound);
  return found?.id.startsWith(fromSnapshot) ? { ...spec, fromSnapshot: found.id } : spec;
}
