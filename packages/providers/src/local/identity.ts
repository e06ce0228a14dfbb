import { readdir, readFile, stat } from "node:fs/promises";
import { join } from "node:path";
import type { DiskReport } from "@holdfast/core";
import { HoldfastError, LimitsReport } from "@holdfast/protocol";
import { isCode, writeDurably } from "./atomic-file.ts";
import type { Layout } from "./layout.ts";
import { type Marker, parseFacts, parseRef } from "./marker.ts";
import { type NamedBy, nameOf, parseName } from "./name.ts";

/** Who lives in an instance's directory. Written before anything is started, so that nothing runs unnamed. */
export interface Identity extends Marker {
  /** The host's user that every process of the instance runs as. */
  readonly uid: number;
  readonly limits: LimitsReport;
  /** The name of the keeper's bundle that it was launched with. */
  readonly bundle: string;
  /** Control groups made for it, to be removed with it. */
  readonly cgroups: readonly string[];
  /** Of the machine when it was launched; `null` where an older release wrote this. */
  readonly bootId: string | null;
  /** What its launch found of the sandbox's disk; absent where an older release wrote this. */
  readonly disk?: DiskReport;
}

export type Inhabitant =
  /** There is no such directory, or nobody ever wrote in it who lives there: then it is none of ours. */
  | { readonly kind: "nobody" }
  | { readonly kind: "known"; readonly identity: Identity }
  /** It is one of ours by its name and its place, and what is written in it makes no sense. */
  | { readonly kind: "unknown" };

const IDENTITY_FILE = "identity.json";

export function instanceDir(layout: Layout, named: NamedBy): string {
  return join(layout.instances, nameOf(named));
}

/** Where an instance's directory is made; it gets its name only when its identity is in it. */
export function draftDir(layout: Layout, named: NamedBy): string {
  return join(layout.instances, `.new-${nameOf(named)}`);
}

export async function writeIdentity(dir: string, identity: Identity): Promise<void> {
  await writeDurably(join(dir, IDENTITY_FILE), JSON.stringify(identity));
}

/** A file that cannot be read now is an error: something may run there, and the next look may tell who. */
export async function readInhabitant(layout: Layout, named: NamedBy): Promise<Inhabitant> {
  const file = join(instanceDir(layout, named), IDENTITY_FILE);
  try {
    const identity = parseIdentity(await readFile(file, "utf8"));
    if (identity === undefined || nameOf(identity.ref) !== nameOf(named)) return { kind: "unknown" };
    // Written once: where the file does not say when, its own date does.
    const createdAt = identity.createdAt ?? Math.floor((await stat(file)).mtimeMs);
    return { kind: "known", identity: { ...identity, createdAt } };
  } catch (error) {
    if (isCode(error, "ENOENT", "ENOTDIR")) return { kind: "nobody" };
    throw new HoldfastError("internal", `cannot read who lives in ${instanceDir(layout, named)}`, {
      cause: error,
      hint: "Look at identity.json there; nothing was changed.",
    });
  }
}

/** What the directories of all instances are called, of those that are not just being made or removed. */
export async function namesOnDisk(layout: Layout): Promise<NamedBy[]> {
  const names = await listOrNothing(layout.instances);
  return names.map(parseName).filter((named) => named !== undefined);
}

/** A folder that was never made is empty; any other failure to look is an error. */
export async function listOrNothing(dir: string): Promise<string[]> {
  try {
    return await readdir(dir);
  } catch (error) {
    if (isCode(error, "ENOENT")) return [];
    throw error;
  }
}

function parseIdentity(text: string): Identity | undefined {
  try {
    const value = JSON.parse(text) as Record<keyof Identity, unknown>;
    const { uid, bundle, cgroups, bootId } = value;
    const wellFormed =
      typeof uid === "number" &&
      typeof bundle === "string" &&
      Array.isArray(cgroups) &&
      cgroups.every((group): group is string => typeof group === "string");
    if (!wellFormed) return undefined;
    return {
      ref: parseRef(value.ref),
      ...parseFacts(value),
      ...{ uid, bundle, cgroups, limits: LimitsReport.parse(value.limits) },
      bootId: typeof bootId === "string" ? bootId : null,
      ...(isDiskReport(value.disk) && { disk: value.disk }),
    };
  } catch {
    return undefined; // its caller says what that means
  }
}

function isDiskReport(value: unknown): value is DiskReport {
  const { state, lost } = (value ?? {}) as Partial<Record<keyof DiskReport, unknown>>;
  return ["new", "kept", "partly"].includes(String(state)) && Array.isArray(lost);
}
