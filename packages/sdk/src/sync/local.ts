import type { BigIntStats, Dirent } from "node:fs";
import type { IgnoreRules } from "./ignore.ts";
import { linkId, whyNotLink } from "./links.ts";
import type { NodeParts } from "./node.ts";
import type { Skipped } from "./options.ts";
import { sideBySide } from "./side-by-side.ts";
import type { LocalStamp, SyncState } from "./state.ts";

export interface LocalFile {
  readonly id: string;
  readonly stamp: LocalStamp;
  readonly size: number;
  readonly mode: string;
  /** Where it leads, if it is a symlink. */
  readonly link?: string;
}

export interface LocalTree {
  readonly files: Map<string, LocalFile>;
  /** All directories that were read, each with whether nothing is in it. */
  readonly directories: Map<string, { isEmpty: boolean }>;
  readonly skipped: Skipped[];
}

// A file that was written shortly before it was hashed may have been written again without another time on it.
const SETTLED_MS = 2_000;

/**
 * Everything below a directory that is to be synced. Symlinks are never followed, neither those that are met nor one
 * that takes a directory's place while we read: nothing outside is read.
 */
export async function readLocalTree(
  node: NodeParts,
  options: { root: string; rules: IgnoreRules; state: SyncState },
): Promise<LocalTree> {
  const { fs } = node;
  const { root, rules, state } = options;
  const tree: LocalTree = { files: new Map(), directories: new Map(), skipped: [] };
  const readDirectory = async (dir: string): Promise<void> => {
    const here = dir === "" ? root : `${root}/${dir}`;
    const before = await fs.lstat(here, { bigint: true });
    const entries = await fs.readdir(here, { withFileTypes: true });
    const after = await fs.lstat(here, { bigint: true });
    if (dir !== "" && (!after.isDirectory() || after.ino !== before.ino)) return;
    tree.directories.set(dir, { isEmpty: entries.length === 0 });
    if (entries.some((entry) => entry.name === ".gitignore" && entry.isFile()))
      rules.add(dir, (await readPlainly(node, `${here}/.gitignore`)).bytes.toString());
    const named = entries.map((entry) => ({ entry, path: dir === "" ? entry.name : `${dir}/${entry.name}` }));
    const kept = named.filter(
      ({ entry, path }) => !rules.ignores(path, { isDirectory: entry.isDirectory() }),
    );
    // Its files first, and at once: the longer ago it was looked at, the likelier something else is in its place.
    const files = kept.filter(({ entry }) => !entry.isDirectory());
    const found = await sideBySide(files, look);
    found.forEach((file, index) => {
      const { path } = files[index] as Named;
      if (typeof file === "string") tree.skipped.push({ path, reason: file });
      else tree.files.set(path, file);
    });
    for (const { entry, path } of kept) if (entry.isDirectory()) await readDirectory(path);
  };
  const look = ({ path, entry }: Named): Promise<LocalFile | string> =>
    lookAt(node, { root, path, entry, known: state.files.get(path) }).catch((error: unknown) =>
      error instanceof Error ? error.message : String(error),
    );
  await readDirectory("");
  return tree;
}

interface Named {
  readonly path: string;
  readonly entry: Dirent;
}

interface Looked extends Named {
  readonly root: string;
  readonly known: { id: string; local: LocalStamp } | undefined;
}

/** A file or a link, or why it is not synced. */
async function lookAt(node: NodeParts, looked: Looked): Promise<LocalFile | string> {
  const { path, entry } = looked;
  if (path.includes("\ufffd")) return "its name is not UTF-8";
  if (entry.isFile()) return describe(node, looked);
  if (!entry.isSymbolicLink()) return "only files and links are synced";
  const link = await node.fs.readlink(`${looked.root}/${path}`);
  const reason = whyNotLink(path, link);
  if (reason !== undefined) return reason;
  const stats = await node.fs.lstat(`${looked.root}/${path}`, { bigint: true });
  return { id: linkId(link), link, stamp: stampOf(stats, Date.now()), size: 0, mode: modeOf(stats) };
}

async function describe(node: NodeParts, { root, path, known }: Looked): Promise<LocalFile> {
  const full = `${root}/${path}`;
  const found = await node.fs.lstat(full, { bigint: true });
  const size = Number(found.size);
  const mode = modeOf(found);
  if (known !== undefined && isSame(known.local, found) && known.id.endsWith(markOf(found)))
    return { id: known.id, stamp: known.local, size, mode };
  const hashedAt = Date.now();
  const { sha256, stats } = await hashPlainly(node, full);
  return { id: sha256 + markOf(stats), stamp: stampOf(stats, hashedAt), size: Number(stats.size), mode };
}

function isSame(stamp: LocalStamp, found: BigIntStats): boolean {
  const isSettled = Number(found.mtimeNs / 1_000_000n) < stamp.hashedAt - SETTLED_MS;
  return isSettled && isUnchanged(stamp, found);
}

/** What its times say, however lately it was written. */
export function isUnchanged(stamp: LocalStamp, found: BigIntStats): boolean {
  return (
    String(found.mtimeNs) === stamp.mtimeNs &&
    String(found.ino) === stamp.ino &&
    Number(found.size) === stamp.size
  );
}

export function stampOf(stats: BigIntStats, hashedAt: number): LocalStamp {
  return { size: Number(stats.size), mtimeNs: String(stats.mtimeNs), ino: String(stats.ino), hashedAt };
}

/** What of the permissions counts as a change: whether it may be executed. The others go along with the content. */
export function markOf({ mode }: { mode: bigint }): ":x" | ":-" {
  return mode & 0o100n ? ":x" : ":-";
}

function modeOf(stats: BigIntStats): string {
  return (Number(stats.mode) & 0o777).toString(8).padStart(4, "0");
}

/** A file's bytes, and its facts as of then; never those of what a link leads to. */
export async function readPlainly(
  node: NodeParts,
  path: string,
): Promise<{ bytes: Buffer; stats: BigIntStats }> {
  const { O_RDONLY, O_NOFOLLOW = 0 } = node.files.constants;
  const file = await node.fs.open(path, O_RDONLY | O_NOFOLLOW);
  try {
    const stats = await file.stat({ bigint: true });
    return { bytes: await file.readFile(), stats };
  } finally {
    await file.close();
  }
}

async function hashPlainly(node: NodeParts, path: string): Promise<{ sha256: string; stats: BigIntStats }> {
  const { O_RDONLY, O_NOFOLLOW = 0 } = node.files.constants;
  const file = await node.fs.open(path, O_RDONLY | O_NOFOLLOW);
  try {
    const stats = await file.stat({ bigint: true });
    const hash = node.crypto.createHash("sha256");
    const buffer = Buffer.allocUnsafe(Number(stats.size < 1_048_576n ? stats.size + 1n : 1_048_576n));
    for (;;) {
      const { bytesRead } = await file.read(buffer, 0, buffer.length, null);
      if (bytesRead === 0) return { sha256: hash.digest("hex"), stats };
      hash.update(buffer.subarray(0, bytesRead));
    }
  } finally {
    await file.close();
  }
}
