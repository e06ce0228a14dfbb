import { statSync } from "node:fs";
import { dirname, join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { isCode } from "./atomic-file.ts";
import { INSTANCE_VARIABLE, inside } from "./inside.ts";
import type { Layout } from "./layout.ts";
import { type ProcessMarker, parseMarker } from "./marker.ts";
import { type NamedBy, nameOf, parseName } from "./name.ts";
import { placeOf } from "./place.ts";
import { findByName, findKeepers, type HostProcess, isAlive, isKeeper, readVariable } from "./processes.ts";

/** A process of an instance whose directory is, or was, in our data dir. */
export interface ProcessHere {
  readonly process: HostProcess;
  readonly named: NamedBy;
  /** `undefined` if all that can be read of it is its name. */
  readonly marker: ProcessMarker | undefined;
}

/** A new program has its arguments a moment before its environment. */
const ENVIRONMENT_LOOKS = 20;

/** Keeper and wrappers of this name, of our data dir only. */
export async function findHere(layout: Layout, named: NamedBy): Promise<ProcessHere[]> {
  const found = await onlyHere(layout, await findByName(nameOf(named)));
  // A sandbox may have another instance's name as its host name, which is an argument, too.
  return found.filter((one) => nameOf(one.named) === nameOf(named));
}

/** Every keeper of our data dir, whatever its name. */
export async function findKeepersHere(layout: Layout): Promise<ProcessHere[]> {
  return onlyHere(layout, await findKeepers());
}

/** `undefined` if it is none of ours, or has ended. */
export async function lookAt(layout: Layout, process: HostProcess): Promise<ProcessHere | undefined> {
  const place = placeOf(layout.dataDir);
  const text = isKeeper(process) ? await keeperMarker(process) : wrapperMarker(process);
  const said = text === undefined ? undefined : parseMarker(text);
  // The keeper's own last argument, which ends the command lines of all that start it.
  const named = parseName(process.argv.at(-1) ?? "");
  if (place === undefined || named === undefined) return undefined;
  const marker = said !== undefined && nameOf(said.ref) === nameOf(named) ? said : undefined;
  const isHere = marker?.place == null ? worksHere(layout, process, named) : marker.place === place;
  return isHere ? { process, named, marker } : undefined;
}

async function onlyHere(layout: Layout, processes: readonly HostProcess[]): Promise<ProcessHere[]> {
  const looks = await Promise.all(processes.map((process) => lookAt(layout, process)));
  return looks.filter((look) => look !== undefined);
}

async function keeperMarker(keeper: HostProcess): Promise<string | undefined> {
  for (let look = 0; look < ENVIRONMENT_LOOKS && isAlive(keeper); look++) {
    if (look > 0) await sleep(1);
    const text = readVariable(keeper.pid, INSTANCE_VARIABLE);
    if (text !== undefined) return text;
  }
  return undefined;
}

/** Each of them has the whole command line of what comes after it, with what bubblewrap is to give to the keeper. */
function wrapperMarker({ argv }: HostProcess): string | undefined {
  const at = argv.indexOf(INSTANCE_VARIABLE);
  return at === -1 ? undefined : argv[at + 1];
}

/** For those that do not say where they belong: whether what they work on is in our data dir. */
function worksHere(layout: Layout, process: HostProcess, named: NamedBy): boolean {
  if (isKeeper(process)) {
    const root = `/proc/${process.pid}/root`;
    return (
      isSameFile(`${root}${inside.run}`, join(layout.instances, nameOf(named), "run")) ||
      isSameFile(`${root}${inside.state}`, join(layout.sandboxes, named.sandboxId, "state"))
    );
  }
  // "--bind <data dir>/instances/<name>/run /.holdfast/run"
  const run = process.argv[process.argv.indexOf(inside.run) - 1];
  return run !== undefined && placeOf(dirname(dirname(dirname(run)))) === placeOf(layout.dataDir);
}

function isSameFile(one: string, other: string): boolean {
  try {
    const [a, b] = [statSync(one, { bigint: true }), statSync(other, { bigint: true })];
    return a.dev === b.dev && a.ino === b.ino;
  } catch (error) {
    if (isCode(error, "ENOENT", "ENOTDIR", "ESRCH")) return false;
    throw error;
  }
}
