import { SQLiteError } from "bun:sqlite";
import { HoldfastError } from "@holdfast/protocol";

/** The disk or another process is in the way: the transaction was undone, and may work later. */
const PASSING = /^SQLITE_(BUSY|LOCKED|FULL|IOERR|READONLY|CANTOPEN|NOMEM|PROTOCOL)/;

/** What may pass becomes `unavailable`; anything else is a defect, and stays what it is. */
export function explained(error: unknown): unknown {
  if (!(error instanceof SQLiteError && PASSING.test(error.code ?? ""))) return error;
  return new HoldfastError("unavailable", `the database cannot be used: ${error.message}`, {
    hint: hintFor(error.code ?? ""),
    details: { sqlite: error.code },
    cause: error,
  });
}

function hintFor(code: string): string {
  if (/BUSY|LOCKED/.test(code)) return "another program holds holdfast.db locked: end it, then ask again";
  if (/FULL/.test(code)) return "make room on the disk of the data dir, then ask again: nothing was changed";
  return "look at the disk of the data dir (`df`, `dmesg`), then ask again";
}
