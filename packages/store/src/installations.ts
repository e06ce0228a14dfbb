import { first, insertInto, type Tx } from "./driver.ts";

/** Made on the first call. There is one row, and reservations queue for it. */
export async function installationId(tx: Tx, newId: () => string): Promise<string> {
  const found = await first(tx, "SELECT id FROM installation");
  if (found !== undefined) return String(found.id);
  const columns = { id: newId(), created_at: await tx.now() };
  await insertInto(tx, "installation", columns, { onConflict: "ON CONFLICT DO NOTHING" });
  return installationId(tx, newId);
}

export async function home(tx: Tx, ours: string): Promise<string> {
  await tx.run("UPDATE installation SET home = $1 WHERE home IS NULL", ours);
  return String((await first(tx, "SELECT home FROM installation"))?.home);
}

export async function moveHome(tx: Tx, to: string): Promise<void> {
  await tx.run("UPDATE installation SET home = $1", to);
}
