import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import type { InstanceRef } from "@holdfast/core";
import { HoldfastError, LimitsReport } from "@holdfast/protocol";
import { isCode, writeDurably } from "./atomic-file.ts";
import type { Layout } from "./layout.ts";

/** Who lives in an instance's directory. Written before anything is started, so that nothing runs unnamed. */
export interface Identity {
  readonly ref: InstanceRef;
  /** The host's user that every process of the instance runs as. */
  readonly uid: number;
  readonly limits: LimitsReport;
  /** The name of the keeper's bundle that it was launched with. */
  readonly bundle: string;
  /** Control groups made for it, to be removed with it. */
  readonly cgroups: readonly string[];
}

const IDENTITY_FILE = "identity.json";

/** Ids become file names and arguments: nothing that a path could mean something by gets in. */
const SAFE_ID = /^[A-Za-z0-9][A-Za-z0-9_.-]{0,99}$/;

/** The instance's name: of its directory, its control groups, and in the arguments of each of our own processes. */
export function nameOf(ref: Pick<InstanceRef, "sandboxId" | "generation">): string {
  assertSafeId(ref.sandboxId);
  return `hf-${ref.sandboxId}-g${ref.generation}`;
}

export function assertSafeId(sandboxId: string): void {
  if (SAFE_ID.test(sandboxId)) return;
  throw new HoldfastError("invalid_argument", `"${sandboxId}" cannot be the id of a sandbox`, {
    hint: "Use 1 to 100 letters, digits, _ . -, beginning with a letter or a digit.",
  });
}

export function instanceDir(layout: Layout, ref: Pick<InstanceRef, "sandboxId" | "generation">): string {
  return join(layout.instances, nameOf(ref));
}

/** Where an instance's directory is made; it gets its name only when its identity is in it. */
export function draftDir(layout: Layout, ref: Pick<InstanceRef, "sandboxId" | "generation">): string {
  return join(layout.instances, `.new-${nameOf(ref)}`);
}

export function sameInstance(a: InstanceRef, b: InstanceRef): boolean {
  return (
    a.installationId === b.installationId &&
    a.sandboxId === b.sandboxId &&
    a.instanceId === b.instanceId &&
    a.generation === b.generation
  );
}

export async function writeIdentity(dir: string, identity: Identity): Promise<void> {
  await writeDurably(join(dir, IDENTITY_FILE), JSON.stringify(identity));
}

/** `undefined` if there is no such directory; one that cannot be read is an error, because something may run in it. */
export async function readIdentity(dir: string): Promise<Identity | undefined> {
  try {
    return JSON.parse(await readFile(join(dir, IDENTITY_FILE), "utf8"), checkIdentity) as Identity;
  } catch (error) {
    if (isCode(error, "ENOENT")) return undefined;
    throw new HoldfastError("internal", `cannot read who lives in ${dir}`, {
      cause: error,
      hint: "Look at identity.json there; nothing was changed.",
    });
  }
}

/** The directories of all instances, finished or not being made any more. */
export async function instanceDirs(layout: Layout): Promise<string[]> {
  const names = await listOrNothing(layout.instances);
  return names.filter((name) => name.startsWith("hf-")).map((name) => join(layout.instances, name));
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

function checkIdentity(key: string, value: unknown): unknown {
  if (key === "limits") return LimitsReport.parse(value);
  if (key === "ref") return parseRef(value);
  if (key === "uid" && !Number.isInteger(value)) throw new TypeError("uid is not a number");
  if (key === "cgroups" && !Array.isArray(value)) throw new TypeError("cgroups is not a list");
  return value;
}

/** From a file or from the environment of a keeper; throws on anything else. */
export function parseRef(value: unknown): InstanceRef {
  const { installationId, sandboxId, instanceId, generation } = value as Record<keyof InstanceRef, unknown>;
  const wellFormed =
    typeof installationId === "string" &&
    typeof sandboxId === "string" &&
    SAFE_ID.test(sandboxId) &&
    typeof instanceId === "string" &&
    Number.isInteger(generation);
  if (!wellFormed) throw new TypeError("not an instance's identity");
  return { installationId, sandboxId, instanceId, generation: generation as number };
}
