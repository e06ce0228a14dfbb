import { HoldfastError } from "@holdfast/protocol/errors";
import type { Files } from "../files.ts";
import type { Scope } from "../scope.ts";
import { IgnoreRules } from "./ignore.ts";
import { linkId } from "./links.ts";
import { type LocalTree, readLocalTree } from "./local.ts";
import { LocalDirectory } from "./local-directory.ts";
import { type NodeParts, nodeParts } from "./node.ts";
import type { Skipped, SyncOptions, SyncResult } from "./options.ts";
import { type Direction, decide, type Step } from "./plan.ts";
import { RemoteDirectory, type RemoteTree } from "./remote.ts";
import { defaultStateFile, SyncState } from "./state.ts";
import { deleteLocal, download, type Job, type Transfer, upload } from "./transfer.ts";

export interface SyncPlace {
  readonly scope: Scope;
  readonly files: Files;
  readonly sandbox: string;
}

/** Makes two directories the same, by what changed on each since the last time. */
export async function sync(
  place: SyncPlace,
  localDir: string,
  remoteDir: string,
  options: SyncOptions,
): Promise<SyncResult> {
  const node = await nodeParts();
  const direction = options.direction ?? "up";
  const remote = new RemoteDirectory({ ...place, root: remoteDir, signal: options.signal });
  const local = new LocalDirectory(node, await realDirectory(node, localDir, direction));
  const key = { url: place.scope.client.url, sandbox: place.sandbox, local: local.root, remote: remote.root };
  const state = await SyncState.open(node, options.stateFile ?? defaultStateFile(node, key));
  const trees = await readTrees(node, { local, remote, state, ignore: options.ignore ?? [], direction });
  checkNotEmptied(state, trees, options);
  const result: SyncResult = {
    ...{ uploaded: [], downloaded: [], deletedRemote: [], deletedLocal: [] },
    ...{ unchanged: 0, conflicts: [] },
    skipped: [...trees.local.skipped, ...trees.remote.skipped, ...emptyOnes(trees, direction)],
  };
  const plan = planOf({ trees, state, direction, delete: options.delete ?? false, result });
  if (plan.upload.length > 0) await remote.makeRoot();
  try {
    await carryOut(plan, { local, remote, state, result, options });
  } catch (error) {
    await state.save().catch(() => undefined); // of the two failures, the first is told
    throw error;
  }
  await state.save();
  return result;
}

// What a write that was cut may have left, here and in the sandbox.
const DRAFTS = [".holdfast-sync-*", ".holdfast-tmp-*"];

interface Trees {
  readonly local: LocalTree;
  readonly remote: RemoteTree;
  /** What the files in the sandbox hold, where that is needed for a comparison. */
  readonly remoteIds: Map<string, string>;
}

async function readTrees(
  node: NodeParts,
  parts: {
    local: LocalDirectory;
    remote: RemoteDirectory;
    state: SyncState;
    ignore: string[];
    direction: Direction;
  },
): Promise<Trees> {
  const { local, remote, state } = parts;
  const rules = new IgnoreRules().add("", [".git/", ...DRAFTS, ...parts.ignore].join("\n"));
  const here = await readLocalTree(node, { root: local.root, rules, state });
  const there = (await remote.tree()) ?? nothingAt(remote.root, parts.direction);
  // Those of the sandbox count where there are none here: its build results are not to come down with the rest.
  const isNews = (path: string) => /(^|\/)\.gitignore$/.test(path) && !here.files.has(path);
  for await (const { file, bytes } of remote.read([...there.files.keys()].filter(isNews), "content"))
    if (!("error" in file))
      rules.add(file.path.replace(/\/?\.gitignore$/, ""), new TextDecoder().decode(bytes));
  for (const path of [...here.files.keys()]) if (rules.ignoresFile(path)) here.files.delete(path);
  for (const path of [...there.files.keys()]) if (rules.ignoresFile(path)) there.files.delete(path);
  for (const path of [...there.directories.keys()])
    if (path !== "" && rules.ignoresDirectory(path)) there.directories.delete(path);
  const skipped = there.skipped.filter(({ path }) => !rules.ignoresFile(path));
  const remoteIds = await remoteIdsOf({ here, there, remote, state });
  return { local: here, remote: { ...there, skipped }, remoteIds };
}

function nothingAt(root: string, direction: Direction): RemoteTree {
  if (direction !== "down") return { files: new Map(), directories: new Map(), skipped: [] };
  throw new HoldfastError("not_found", `there is no directory ${root} in the sandbox`, {
    hint: "check the path; nothing was changed here",
    started: "no",
  });
}

/** One whose etag we know was not touched; the others are hashed in the sandbox, if there is anything to compare. */
async function remoteIdsOf(parts: {
  here: LocalTree;
  there: RemoteTree;
  remote: RemoteDirectory;
  state: SyncState;
}): Promise<Map<string, string>> {
  const { here, there, remote, state } = parts;
  const ids = new Map<string, string>();
  const unknown: string[] = [];
  for (const [path, file] of there.files) {
    const noted = state.files.get(path);
    if (file.link !== undefined) ids.set(path, linkId(file.link));
    else if (noted?.etag === file.etag) ids.set(path, noted.id);
    else if (noted !== undefined || here.files.has(path)) unknown.push(path);
  }
  for (const [path, { etag, sha256 }] of await remote.hashes(unknown)) {
    const file = there.files.get(path);
    if (file === undefined) continue;
    ids.set(path, sha256 + file.mark);
    there.files.set(path, { ...file, etag });
  }
  return ids;
}

/** Directories that one side has and the other does not get, because nothing is in them. */
function emptyOnes({ local, remote }: Trees, direction: Direction): Skipped[] {
  const missing = (from: LocalTree | RemoteTree, to: LocalTree | RemoteTree): Skipped[] =>
    [...from.directories]
      .filter(([path, { isEmpty }]) => isEmpty && path !== "" && !to.directories.has(path))
      .map(([path]) => ({ path: `${path}/`, reason: "empty directories are not synced" }));
  return [
    ...(direction === "down" ? [] : missing(local, remote)),
    ...(direction === "up" ? [] : missing(remote, local)),
  ];
}

type Plan = Record<"upload" | "download" | "delete-remote" | "delete-local", Job[]>;

function planOf(parts: {
  trees: Trees;
  state: SyncState;
  direction: Direction;
  delete: boolean;
  result: SyncResult;
}): Plan {
  const { trees, state, direction, result } = parts;
  const plan: Plan = { upload: [], download: [], "delete-remote": [], "delete-local": [] };
  const skipped = new Set(result.skipped.map(({ path }) => path));
  const paths = new Set([...trees.local.files.keys(), ...trees.remote.files.keys(), ...state.files.keys()]);
  for (const path of [...paths].sort()) {
    if (skipped.has(path)) continue; // a link or the like is in its place on one side
    const local = trees.local.files.get(path);
    const remote = trees.remote.files.get(path);
    // Of one that is new, and only there, nothing needs to be known.
    const remoteSide = remote && { id: trees.remoteIds.get(path) ?? `etag ${remote.etag}` };
    const base = state.files.get(path);
    const step: Step = decide({ local, remote: remoteSide, base, direction, delete: parts.delete });
    if (step.do === "conflict") result.conflicts.push({ path, reason: step.reason });
    else if (step.do === "leave") result.skipped.push({ path, reason: step.reason });
    else if (step.do !== "nothing" && step.do !== "note") plan[step.do].push({ path, local, remote });
    else if (local === undefined || remote === undefined) state.forget(path);
    else {
      result.unchanged += 1;
      state.note(path, { id: local.id, etag: remote.etag, local: local.stamp });
    }
  }
  return plan;
}

async function carryOut(
  plan: Plan,
  parts: Omit<Transfer, "onOutcome"> & { result: SyncResult; options: SyncOptions },
): Promise<void> {
  const { result, options, ...directories } = parts;
  const total = Object.values(plan).reduce((sum, jobs) => sum + jobs.length, 0);
  let done = 0;
  const transfer = (finished: string[]): Transfer => ({
    ...directories,
    onOutcome(job, outcome) {
      options.signal?.throwIfAborted();
      if (outcome.done) finished.push(job.path);
      else
        (outcome.isConflict ? result.conflicts : result.skipped).push({
          path: job.path,
          reason: outcome.reason,
        });
      done += 1;
      options.onProgress?.({ done, total, path: job.path });
    },
  });
  // Deletions first: a file may have become a directory, or the other way round.
  await upload(transfer(result.deletedRemote), plan["delete-remote"]);
  await deleteLocal(transfer(result.deletedLocal), plan["delete-local"]);
  await upload(transfer(result.uploaded), plan.upload);
  await download(transfer(result.downloaded), plan.download);
}

async function realDirectory(node: NodeParts, dir: string, direction: Direction): Promise<string> {
  try {
    if (direction !== "up") await node.fs.mkdir(dir, { recursive: true });
    return await node.fs.realpath(dir);
  } catch (cause) {
    throw new HoldfastError("invalid_argument", `${dir} cannot be synced: ${(cause as Error).message}`, {
      hint: "name a directory of this machine first, then the sandbox's; `down` makes one that is missing",
      cause,
      started: "no",
    });
  }
}

/** A side that has lost everything was not emptied on purpose: a disk was lost, or it is the wrong directory. */
function checkNotEmptied(state: SyncState, trees: Trees, options: SyncOptions): void {
  if (!options.delete || state.files.size === 0) return;
  const side = trees.local.files.size === 0 ? "the local directory" : "the sandbox's directory";
  if (trees.local.files.size > 0 && trees.remote.files.size > 0) return;
  throw new HoldfastError("state_lost", `${side} has no files any more, but had some at the last sync`, {
    hint: "sync without `delete` to bring them back; or delete them on the other side yourself",
    details: { filesAtTheLastSync: state.files.size },
    started: "no",
  });
}
