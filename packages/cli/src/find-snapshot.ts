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

/** The same spec, with the snapshot that it begins with by its whole id. */
export async function withSnapshotFound(client: Client, spec: CreateSandbox): Promise<CreateSandbox> {
  const { fromSnapshot } = spec;
  if (fromSnapshot === undefined) return spec;
  return { ...spec, fromSnapshot: (await findSnapshot(client, fromSnapshot)).id };
}
