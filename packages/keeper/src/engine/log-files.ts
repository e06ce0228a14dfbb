import { lstatSync, readdirSync, rmSync, statSync } from "node:fs";
import { join } from "node:path";
import { isMissing } from "./disk-errors.ts";

/**
 * A log on disk is a ring of segments, each a file of whole frames named `<id>.<offset of its first byte>`. One that was
 * recycled may have older frames after its own. An id may contain dots; the offset never does, so the last dot decides.
 */
export function segmentPath(dir: string, segment: { id: string; start: number }): string {
  return join(dir, `${segment.id}.${segment.start}`);
}

/**
 * The first bytes of each stream of a command whose log has dropped its beginning, so that its result can be given
 * again as it was given first. Frames, too.
 */
export function headPath(dir: string, id: string): string {
  return join(dir, `${id}.head`);
}

export interface StoredLog {
  /** Where each segment begins, in order. */
  readonly starts: number[];
  bytes: number;
}

/** Every log in the directory, by id. What is not named like a segment is not ours to judge and is left out. */
export function listLogs(dir: string): Map<string, StoredLog> {
  const logs = new Map<string, StoredLog>();
  for (const name of namesIn(dir)) {
    const [, id, part] = /^(.+)\.(\d{1,15}|head)$/.exec(name) ?? [];
    if (id === undefined) continue;
    const log = logs.get(id) ?? { starts: [], bytes: 0 };
    if (part !== "head") log.starts.push(Number(part));
    log.bytes += statSync(join(dir, name), { throwIfNoEntry: false })?.size ?? 0;
    logs.set(id, log);
  }
  for (const log of logs.values()) log.starts.sort((a, b) => a - b);
  return logs;
}

export function removeLog(dir: string, log: { id: string; starts: readonly number[] }): void {
  for (const start of log.starts)
    rmSync(segmentPath(dir, { id: log.id, start }), { force: true, recursive: true });
  if (log.starts[0] !== 0) rmSync(headPath(dir, log.id), { force: true, recursive: true });
}

/** The work can put anything where our directory was, such as a link to another: that is taken away, not followed. */
function namesIn(dir: string): string[] {
  try {
    if (lstatSync(dir).isDirectory()) return readdirSync(dir);
    rmSync(dir);
    return [];
  } catch (error) {
    if (isMissing(error)) return [];
    throw error;
  }
}
