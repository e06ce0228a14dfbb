import { HoldfastError } from "@holdfast/protocol";
import { first, type Tx } from "../driver.ts";
import { migrations } from "./migrations.ts";

/** Only servers that start at the same time wait here for each other; the number means nothing else. */
const MIGRATION_LOCK = 4_653_483;

export async function migrate(tx: Tx): Promise<void> {
  await tx.all("SELECT pg_advisory_xact_lock($1)", MIGRATION_LOCK);
  await tx.run("CREATE TABLE IF NOT EXISTS holdfast_schema (version BIGINT NOT NULL)");
  const row = await first(tx, "SELECT version FROM holdfast_schema");
  const from = Number(row?.version ?? 0);
  if (from > migrations.length) throw tooNew(from);
  if (from === migrations.length) return;
  for (const step of migrations.slice(from)) await tx.run(step);
  await tx.run("DELETE FROM holdfast_schema");
  await tx.run("INSERT INTO holdfast_schema (version) VALUES ($1)", migrations.length);
}

function tooNew(found: number): HoldfastError {
  return new HoldfastError(
    "unavailable",
    `the database has schema ${found}, and this version of Holdfast knows only up to ${migrations.length}`,
    {
      hint: "start the newer version of Holdfast again, or give this one another database",
      retryable: false,
    },
  );
}
