import { type Conditions, checkConditions } from "../files/conditions.ts";
import { etagOf } from "../files/describe.ts";
import { rename, stat, symlink, unlink } from "../files/fs-calls.ts";
import { withParents } from "../files/make-directory.ts";
import { openSpot, type Target } from "../files/paths.ts";
import type { Pending } from "../files/pending.ts";
import { replaceable } from "../files/put-in-place.ts";

/** Puts a symlink in the place of a file, of another link, or of nothing. What it leads to is not looked at. */
export function putLink(
  request: Conditions & { readonly target: Target; readonly leadsTo: Uint8Array },
  pending: Pending,
): { etag: string } {
  const { target, leadsTo } = request;
  using spot = withParents(target, () => openSpot(target));
  const temporary = pending.add(spot.dirFd);
  const draft = { dirFd: spot.dirFd, name: temporary.name };
  try {
    const found = replaceable(spot, target);
    checkConditions(target.path, found, request);
    symlink(leadsTo, draft);
    try {
      rename(draft, spot, { ifTaken: found === undefined ? "refuse" : "replace" });
    } catch (error) {
      unlink(draft.dirFd, draft.name);
      throw error;
    }
    return { etag: etagOf(stat(spot.dirFd, spot.name)) };
  } finally {
    temporary.done();
  }
}
