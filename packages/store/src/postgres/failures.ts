import { HoldfastError } from "@holdfast/protocol";
import { SQL } from "bun";

/**
 * Classes of SQLSTATE that may pass: lost connections, serialization failures and deadlocks, a full disk or too many
 * connections, a server that is ending, a lock that another held for too long, a transaction left open for too long.
 */
const PASSING = /^(08|40001|40P01|53|57P0|57014|55P03|25P03)/;

/** What the client itself says when the connection is not there: such an error has no SQLSTATE. */
const CONNECTION = /CONNECTION|TIMEOUT|LIFETIME|ECONN|EPIPE|ENOENT/;

/** What may pass becomes `unavailable`; anything else is a defect, and stays what it is. */
export function explained(error: unknown): unknown {
  if (isUnwelcome(error)) return refusal(error);
  if (!mayPass(error)) return error;
  return new HoldfastError("unavailable", `the database cannot be used: ${error.message}`, {
    hint: hintFor(error.errno),
    details: { postgres: error.errno ?? error.code },
    cause: error,
  });
}

/** The connection was lost between the wish to commit and its answer. */
export function unknownCommit(error: unknown): unknown {
  if (!mayPass(error) || wasRefused(error)) return explained(error);
  return new HoldfastError("unavailable", `the database may or may not have taken it: ${error.message}`, {
    hint: "look whether it happened, then ask again: what is asked for under the same version or key happens once",
    details: { postgres: error.errno ?? error.code, committed: "unknown" },
    cause: error,
  });
}

export function noAnswer(afterMs: number): HoldfastError {
  return new HoldfastError("unavailable", `the database has not answered for ${afterMs / 1000} s`, {
    hint: "see whether PostgreSQL can be reached at the configured address, then ask again",
    details: { committed: "unknown" },
  });
}

/** A wrong user or password, or no such database. */
function isUnwelcome(error: unknown): error is SQL.PostgresError {
  return error instanceof SQL.PostgresError && /^(28|3D)/.test(error.errno ?? "");
}

function refusal(error: SQL.PostgresError): HoldfastError {
  return new HoldfastError("unavailable", `PostgreSQL refuses us: ${error.message}`, {
    hint: "check the user, the password and the name of the database in the configured URL",
    details: { postgres: error.errno },
    retryable: false,
    cause: error,
  });
}

function mayPass(error: unknown): error is SQL.PostgresError {
  if (!(error instanceof SQL.PostgresError)) return false;
  return error.errno === undefined ? CONNECTION.test(error.code) : PASSING.test(error.errno);
}

/** An answer to the commit itself: it was not done. */
function wasRefused({ errno }: SQL.PostgresError): boolean {
  return errno !== undefined && /^(40|53)/.test(errno);
}

function hintFor(sqlState: string | undefined): string {
  if (sqlState === undefined || /^(08|57P0)/.test(sqlState)) {
    return "see whether PostgreSQL runs and can be reached at the configured address, then ask again";
  }
  if (sqlState.startsWith("53"))
    return "PostgreSQL has no room left (disk, memory or connections): see its log";
  return "others work on the same rows: ask again in a moment";
}
