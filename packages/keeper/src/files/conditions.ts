import { HoldfastError } from "@holdfast/protocol";
import { etagOf } from "./describe.ts";
import type { Stat } from "./fs-calls.ts";

export interface Conditions {
  readonly ifMatch: string | null;
  readonly ifNoneMatch: string | null;
}

/** Whether an If-Match or If-None-Match header names it. */
export function matches(header: string, etag: string): boolean {
  if (header.trim() === "*") return true;
  return header.split(",").some((one) => one.trim().replace(/^(?:W\/)?"|"$/g, "") === etag);
}

/** Throws `precondition_failed` if what is there now is not what the caller goes by. */
export function checkConditions(path: Buffer, found: Stat | undefined, conditions: Conditions): void {
  const { ifMatch, ifNoneMatch } = conditions;
  const etag = found === undefined ? undefined : etagOf(found);
  if (ifMatch !== null && (etag === undefined || !matches(ifMatch, etag)))
    throw failed(path, etag, etag === undefined ? "is gone" : "was changed since");
  if (ifNoneMatch !== null && etag !== undefined && matches(ifNoneMatch, etag))
    throw failed(path, etag, "is there already");
}

function failed(path: Buffer, etag: string | undefined, what: string): HoldfastError {
  return new HoldfastError("precondition_failed", `${path} ${what}; nothing was changed`, {
    hint: "look at it again, and decide anew",
    details: { path: path.toString(), ...(etag !== undefined && { etag }) },
    started: "no",
  });
}
