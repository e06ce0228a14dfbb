import { HoldfastError } from "@holdfast/protocol/errors";

export function codeOf(error: unknown): string | undefined {
  const code = error instanceof Error && "code" in error ? error.code : undefined;
  return typeof code === "string" ? code : undefined;
}

export function isMissing(error: unknown): boolean {
  return codeOf(error) === "ENOENT";
}

/** The keeper's own files could not be written before the work was begun: it was not begun. */
export function cannotRecord(error: unknown): HoldfastError {
  const full = codeOf(error) === "ENOSPC" || codeOf(error) === "EDQUOT";
  const message = full
    ? "the sandbox's disk is full, so the command could not be recorded and was not started"
    : `the command could not be recorded and was not started: ${error instanceof Error ? error.message : String(error)}`;
  const hint = full ? "delete files in the sandbox, then try again" : "look at the sandbox's state directory";
  return new HoldfastError("unavailable", message, { hint, started: "no", cause: error });
}
