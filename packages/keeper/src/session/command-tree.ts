import { readFileSync } from "node:fs";
import type { KillReport } from "@holdfast/protocol";
import { MARKER } from "../engine/environment.ts";
import {
  hasEnvironmentEntry,
  isAlive,
  listProcesses,
  lookAt,
  mentionsInEnvironment,
  type ProcessEntry,
  type ProcessRef,
  signalExactly,
} from "../engine/proc-table.ts";
import { unattributedSince } from "../engine/tree.ts";

/** One command of a session, whose shell lives on in earlier commands' background jobs. */
export interface CommandTree {
  readonly main: ProcessRef;
  /** Our own processes, which look like the shell's. */
  readonly helpers: readonly ProcessRef[];
  /** The command's id, the value of the marker. */
  readonly marker: string;
  /** The marker of what the shell itself forks, which has the shell's own environment. */
  readonly shellMarker: string;
  /** How long ago the command began. */
  readonly ageMs: number;
}

// As for a command without a session: an orderly end within this, the rest is forced.
const TERM_GRACE_MS = 1_000;
const KILL_MS = 900;
const LOOK_EVERY_MS = 10;
// The kernel counts start times in hundredths of a second, on every architecture.
const TICK_MS = 10;

/**
 * Ends everything that one command started, and the shell, which would otherwise go on with the rest of the text; but
 * not what earlier commands left running. The shell is stopped first, so that it starts nothing new meanwhile.
 */
export async function killCommand(tree: CommandTree): Promise<KillReport> {
  signalExactly(tree.main, "SIGSTOP");
  const since = ticksSinceBoot() - Math.ceil(tree.ageMs / TICK_MS) - 1;
  const report = await endAll((known) => membersOf(tree, since, known));
  const shellGone = signalExactly(tree.main, "SIGKILL");
  const killed = report.killed + (shellGone ? 1 : 0);
  return { ...report, killed, unattributed: unattributedSince(since) };
}

/** Ends everything of a session: what carries its marker, and what descends from its shell. */
export function killSession(session: { entry: string; roots: readonly ProcessRef[] }): Promise<KillReport> {
  return endAll((known) => {
    const belongs = (entry: ProcessEntry, parents: ReadonlySet<number>) =>
      session.roots.some((root) => isSame(root, entry)) ||
      parents.has(entry.parent) ||
      hasEnvironmentEntry(entry.pid, session.entry);
    return closure(known, belongs);
  });
}

type Known = Map<number, ProcessRef>;

/** SIGTERM, a grace, SIGKILL, until two looks in a row find nobody. */
async function endAll(look: (known: Known) => ProcessRef[]): Promise<KillReport> {
  const known: Known = new Map();
  for (const ref of look(known)) {
    signalExactly(ref, "SIGTERM");
    signalExactly(ref, "SIGCONT"); // a stopped process does not see SIGTERM
  }
  const grace = performance.now() + TERM_GRACE_MS;
  while (alive(known).length > 0 && performance.now() < grace) await Bun.sleep(LOOK_EVERY_MS);
  const deadline = performance.now() + KILL_MS;
  for (let quiet = 0; quiet < 2 && performance.now() < deadline; ) {
    const found = look(known);
    quiet = found.length === 0 ? quiet + 1 : 0;
    for (const ref of found) signalExactly(ref, "SIGKILL");
    if (found.length > 0) await Bun.sleep(LOOK_EVERY_MS / 2);
  }
  const survivors = alive(known).map(({ pid }) => pid);
  return { verified: "lineage", killed: known.size - survivors.length, survivors, unattributed: [] };
}

function membersOf(tree: CommandTree, since: number, known: Known): ProcessRef[] {
  const ours = [tree.main, ...tree.helpers];
  const session = lookAt(tree.main.pid)?.session ?? 0;
  return closure(known, (entry, parents) => {
    if (ours.some((ref) => isSame(ref, entry))) return false;
    if (parents.has(entry.parent)) return true;
    if (hasEnvironmentEntry(entry.pid, `${MARKER}=${tree.marker}`)) return true;
    // What the shell forked and did not execute has no marker of the command. By its time it is the command's.
    const forked = entry.parent === tree.main.pid || entry.session === session;
    return forked && entry.startTime >= since && !isAnothers(entry, tree);
  });
}

function isAnothers(entry: ProcessEntry, tree: CommandTree): boolean {
  const hasMarker = mentionsInEnvironment(entry.pid, `${MARKER}=`);
  return hasMarker && !hasEnvironmentEntry(entry.pid, `${MARKER}=${tree.shellMarker}`);
}

/** All that belong, also by way of one another; adds them to `known`, and gives those that live. */
function closure(
  known: Known,
  belongs: (entry: ProcessEntry, parents: ReadonlySet<number>) => boolean,
): ProcessRef[] {
  const all = listProcesses().filter(({ pid }) => pid !== process.pid && pid !== 1);
  const members = new Map<number, ProcessEntry>();
  for (const entry of all) if (isSame(known.get(entry.pid), entry)) members.set(entry.pid, entry);
  for (let before = -1; before !== members.size; ) {
    before = members.size;
    const parents = new Set(members.keys());
    for (const entry of all) {
      if (members.has(entry.pid) || !belongs(entry, parents)) continue;
      members.set(entry.pid, entry);
      known.set(entry.pid, entry);
    }
  }
  return [...members.values()];
}

/** As the kernel counts start times. */
function ticksSinceBoot(): number {
  const [seconds = "0"] = readFileSync("/proc/uptime", "utf8").split(" ");
  return Math.floor((Number(seconds) * 1000) / TICK_MS);
}

function alive(known: Known): ProcessRef[] {
  return [...known.values()].filter(isAlive);
}

function isSame(ref: ProcessRef | undefined, entry: ProcessRef): boolean {
  return ref !== undefined && ref.pid === entry.pid && ref.startTime === entry.startTime;
}
