import type { FileChange } from "@holdfast/protocol";
import { byteName } from "../byte-name.ts";

/** A change whose paths are bytes, one to a character. */
export type ByteChange =
  | { type: "created" | "modified" | "deleted"; path: string; directory: boolean }
  | { type: "moved"; from: string; path: string; directory: boolean };

/**
 * Changes of one moment, in their order, with no more than one for a file as long as nothing is lost by that. What
 * changes the tree itself (a move, a directory that comes or goes) is a barrier: nothing is merged across it, because
 * after it a path may be another file.
 */
export class Coalesced {
  #changes: ByteChange[] = [];
  #byPath = new Map<string, number>();

  get size(): number {
    return this.#changes.length;
  }

  add(change: ByteChange): void {
    const isBarrier = change.type === "moved" || (change.directory && change.type !== "modified");
    if (isBarrier) this.#byPath.clear();
    const at = this.#byPath.get(change.path);
    const before = at === undefined ? undefined : this.#changes[at];
    if (at !== undefined && before !== undefined) {
      this.#changes[at] = merged(before, change);
      return;
    }
    if (!isBarrier) this.#byPath.set(change.path, this.#changes.length);
    this.#changes.push(change);
  }

  /** All of them; it is empty afterwards. */
  take(): FileChange[] {
    const taken = this.#changes.map(asWire);
    this.#changes = [];
    this.#byPath.clear();
    return taken;
  }
}

/**
 * A file that came and went is told as `deleted`, and not kept back: it may have been told of before, from the look
 * into a new directory.
 */
function merged(before: ByteChange, after: ByteChange): ByteChange {
  if (before.type === "created" && after.type === "modified") return before;
  if (before.type !== "created" && after.type === "created") return { ...after, type: "modified" };
  return after;
}

function asWire(change: ByteChange): FileChange {
  const { directory } = change;
  const path = byteName("path", change.path);
  if (change.type !== "moved") return { type: change.type, ...path, directory };
  return { type: "moved", ...byteName("from", change.from), ...path, directory };
}
