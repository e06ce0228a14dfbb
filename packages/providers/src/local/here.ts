import { statSync } from "node:fs";
import { dirname, join } from "node:path";
import { isCode } from "./atomic-file.ts";
import { inside, markerIn } from "./inside.ts";
import type { Layout } from "./layout.ts";
import { type ProcessMarker, parseMarker } from "./marker.ts";
import { type NamedBy, nameOf, parseName } from "./name.ts";
import { placeOf } from "./place.ts";
import { findByName, findKeepers, type HostProcess, isKeeper, isWrapper, readProcess } from "./processes.ts";

/** A process of an instance whose directory is, or was, in our data dir. */
export interface ProcessHere {
  readonly process: HostProcess;
  readonly named: NamedBy;
  /** `undefined` if all that can be read of it is its name. */
  readonly marker: ProcessMarker | undefined;
}

/** Keeper and wrappers of this name, of our data dir only. */
export async function findHere(layout: Layout, named: NamedBy): Promise<ProcessHere[]> {
  const found = onlyHere(layout, await findByName(nameOf(named)));
  // A sandbox may have another instance's name as its host name, which is an argument, too.
  return found.filter((one) => nameOf(one.named) === nameOf(named));
}

/** Every keeper of our data dir, whatever its name. */
export async function findKeepersHere(layout: Layout): Promise<ProcessHere[]> {
  return onlyHere(layout, await findKeepers());
}

/** `undefined` if it is none of ours. */
export function lookAt(layout: Layout, process: HostProcess): ProcessHere | undefined {
  const place = placeOf(layout.dataDir);
  // The keeper's own last argument, which ends the command lines of all that start it.
  const named = parseName(process.argv.at(-1) ?? "");
  if (place === undefined || named === undefined) return undefined;
  const starter = starterOf(process);
  const said = parseMarker(markerIn(process.argv) ?? markerIn(starter?.argv ?? []) ?? "");
  const marker = said !== undefined && nameOf(said.ref) === nameOf(named) ? said : undefined;
  const isHere =
    marker?.place == null
      ? startedHere(layout, starter) || worksHere(layout, process, named)
      : marker.place === place;
  return isHere ? { process, named, marker } : undefined;
}

function onlyHere(layout: Layout, processes: readonly HostProcess[]): ProcessHere[] {
  return processes.map((process) => lookAt(layout, process)).filter((look) => look !== undefined);
}

/** Of a keeper the bubblewrap that waits for its end; a wrapper itself. Its arguments say what the keeper works on. */
function starterOf(process: HostProcess): HostProcess | undefined {
  if (!isKeeper(process)) return process;
  const parent = readProcess(process.parentPid);
  const isStarter = parent !== undefined && isWrapper(parent) && parent.argv.at(-1) === process.argv.at(-1);
  return isStarter ? parent : undefined;
}

/** For those that do not say where they belong: "--bind <data dir>/instances/<name>/run /.holdfast/run". */
function startedHere(layout: Layout, starter: HostProcess | undefined): boolean {
  const argv = starter?.argv ?? [];
  const run = argv[argv.indexOf(inside.run) - 1];
  return run !== undefined && placeOf(dirname(dirname(dirname(run)))) === placeOf(layout.dataDir);
}

/** And where nobody waits for the keeper any more, as far as we may look: whether it sees what is in our data dir. */
function worksHere(layout: Layout, keeper: HostProcess, named: NamedBy): boolean {
  const root = `/proc/${keeper.pid}/root`;
  return (
    isSameFile(`${root}${inside.run}`, join(layout.instances, nameOf(named), "run")) ||
    isSameFile(`${root}${inside.state}`, join(layout.sandboxes, named.sandboxId, "state"))
  );
}

function isSameFile(one: string, other: string): boolean {
  try {
    const [a, b] = [statSync(one, { bigint: true }), statSync(other, { bigint: true })];
    return a.dev === b.dev && a.ino === b.ino;
  } catch (error) {
    if (isCode(error, "ENOENT", "ENOTDIR", "ESRCH", "EACCES")) return false;
    throw error;
  }
}
