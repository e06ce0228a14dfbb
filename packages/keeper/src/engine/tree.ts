import type { KillReport } from "@holdfast/protocol";
import { isOwnChild, tags } from "./children.ts";
import { MARKER } from "./environment.ts";
import { tagOf } from "./oom-score.ts";
import {
  describe,
  hasEnvironmentEntry,
  isAlive,
  listProcesses,
  mentionsInEnvironment,
  type ProcessEntry,
  type ProcessRef,
  signalExactly,
} from "./proc-table.ts";

/**
 * A tree is more than a process group: what was started may have left its group, its session and its parent. Members
 * are found by any of
 *
 *   - the process group or the session that the leader made,
 *   - descent from a member, through parents,
 *   - the marker that everything started by the run has in its environment,
 *   - for an orphan without any marker: the tag that the kernel handed down to it (tree-tags.ts).
 *
 * A number is never trusted alone: a process is its number and its start time, and group and session count only while
 * somebody known has held them, since the kernel gives such a number to nobody else before.
 */
export interface TreeTarget {
  /** Absent if it has already ended: then only the marker, and descent from what has it, are left to go by. */
  readonly leader?: ProcessRef | undefined;
  /** The run's id, the value of the marker. */
  readonly marker: string;
}

// A timeout must leave nothing within 2 s in all: this much to end in an orderly way, the rest for the forced end.
const TERM_GRACE_MS = 1_000;
const KILL_MS = 900;
const LOOK_EVERY_MS = 10;

/** Ends the whole tree and says what was seen. Never throws because something was already gone. */
export async function killTree(target: TreeTarget, options: { graceMs?: number } = {}): Promise<KillReport> {
  const members = new Members(target);
  members.look();
  members.signal("SIGTERM");
  members.signal("SIGCONT"); // a stopped process does not see SIGTERM
  await members.goneWithin(options.graceMs ?? TERM_GRACE_MS);
  await killWhatIsLeft(members);
  const survivors = members.alive();
  return {
    verified: "lineage",
    killed: members.size - survivors.length,
    survivors: survivors.map(({ pid }) => pid),
    unattributed: unattributedSince(target.leader?.startTime ?? 0),
  };
}

/** Two looks in a row that find nothing: one could have missed a child that was just being made. */
async function killWhatIsLeft(members: Members): Promise<void> {
  const deadline = performance.now() + KILL_MS;
  for (let quietLooks = 0; quietLooks < 2; ) {
    const found = members.look();
    quietLooks = found === 0 ? quietLooks + 1 : 0;
    if (found > 0) members.signal("SIGKILL");
    if (performance.now() > deadline) return;
    if (found > 0) await Bun.sleep(LOOK_EVERY_MS / 2);
  }
}

/** Who belongs to the tree now. */
export function treeMembers(target: TreeTarget): ProcessRef[] {
  const members = new Members(target);
  members.look();
  return members.alive();
}

class Members {
  readonly #target: TreeTarget;
  /** All that were ever seen, by pid; a later process of the same pid replaces the dead one. */
  readonly #known = new Map<number, ProcessRef>();
  readonly #groups = new Set<number>();
  readonly #sessions = new Set<number>();
  #dead = 0;

  constructor(target: TreeTarget) {
    this.#target = target;
  }

  get size(): number {
    return this.#known.size + this.#dead;
  }

  alive(): ProcessRef[] {
    return [...this.#known.values()].filter(isAlive);
  }

  signal(name: "SIGTERM" | "SIGCONT" | "SIGKILL"): void {
    for (const member of this.#known.values()) signalExactly(member, name);
  }

  async goneWithin(ms: number): Promise<void> {
    const deadline = performance.now() + ms;
    while (this.alive().length > 0 && performance.now() < deadline) await Bun.sleep(LOOK_EVERY_MS);
  }

  /** Looks for members until no more are found by way of the new ones; returns how many live. */
  look(): number {
    const all = listProcesses().filter(({ pid }) => pid !== process.pid && pid !== 1);
    const living = new Map(all.map((entry) => [entry.pid, entry]));
    for (let before = -1; before !== this.#countLiving(living); ) {
      before = this.#countLiving(living);
      for (const entry of all) if (!this.#has(entry) && this.#belongs(entry, living)) this.#add(entry);
    }
    return this.#countLiving(living);
  }

  #belongs(entry: ProcessEntry, living: ReadonlyMap<number, ProcessEntry>): boolean {
    const { leader, marker } = this.#target;
    if (entry.pid === leader?.pid && entry.startTime === leader.startTime) return true;
    if (entry.startTime < (leader?.startTime ?? 0)) return false;
    if (this.#groups.has(entry.group) || this.#sessions.has(entry.session)) return true;
    const parent = living.get(entry.parent);
    if (parent !== undefined && this.#has(parent)) return true;
    if (hasEnvironmentEntry(entry.pid, `${MARKER}=${marker}`)) return true;
    return isUnmarkedOrphan(entry) && ownerByTag(entry) === marker;
  }

  #has(entry: ProcessEntry): boolean {
    return this.#known.get(entry.pid)?.startTime === entry.startTime;
  }

  #add(entry: ProcessEntry): void {
    if (this.#known.has(entry.pid)) this.#dead += 1;
    this.#known.set(entry.pid, entry);
    // Only what a member itself made is wholly the run's: an inherited group or session has others in it.
    if (entry.group === entry.pid) this.#groups.add(entry.pid);
    if (entry.session === entry.pid) this.#sessions.add(entry.pid);
  }

  #countLiving(living: ReadonlyMap<number, ProcessEntry>): number {
    let count = 0;
    for (const ref of this.#known.values()) if (living.get(ref.pid)?.startTime === ref.startTime) count += 1;
    return count;
  }
}

/** Orphans that began no earlier and that nothing attributes to any run: they may be its, and nobody can tell. */
export function unattributedSince(startTime: number): KillReport["unattributed"] {
  return listProcesses()
    .filter(
      (entry) => entry.startTime >= startTime && isUnmarkedOrphan(entry) && ownerByTag(entry) === undefined,
    )
    .map((entry) => ({ pid: entry.pid, command: describe(entry) }));
}

/** Only PID 1 of a sandbox can tell; elsewhere the orphans of the whole machine would be meant. */
function isUnmarkedOrphan(entry: ProcessEntry): boolean {
  if (process.pid !== 1 || entry.parent !== 1 || isOwnChild(entry.pid)) return false;
  return !mentionsInEnvironment(entry.pid, `${MARKER}=`);
}

function ownerByTag(entry: ProcessEntry): string | undefined {
  return tags.ownerOf(tagOf(entry.pid));
}
