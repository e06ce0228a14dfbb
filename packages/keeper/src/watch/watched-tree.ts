import { lstatSync, readdirSync } from "node:fs";
import type { ResyncReason } from "@holdfast/protocol";
import { PENDING_PREFIX } from "../files/pending.ts";
import type { ByteChange } from "./coalesced.ts";
import { bits, Inotify, type Notice } from "./inotify.ts";
import { UnpairedMoves } from "./unpaired-moves.ts";
import { WatchedDirectory } from "./watched-directory.ts";

const CHANGES =
  bits.create | bits.delete | bits.modify | bits.closeWrite | bits.attrib | bits.movedFrom | bits.movedTo;
const OF_THE_ROOT = CHANGES | bits.deleteSelf | bits.moveSelf | bits.onlyDir;
// A link to a directory is a file here: following it could lead out of the tree, or around in it.
const OF_THE_REST = CHANGES | bits.onlyDir | bits.dontFollow;

const THE_ROOT_IS_GONE = bits.deleteSelf | bits.moveSelf | bits.unmount | bits.ignored;

// Each is a few hundred bytes of ours and about a kilobyte of the kernel's.
const MOST_DIRECTORIES = 200_000;
// After so many the rest of the keeper has its turn.
const ENTRIES_AT_ONCE = 500;

export interface TreeOptions {
  /** Bytes, one to a character, like all paths here. */
  readonly path: string;
  readonly recursive: boolean;
  /** Only the entry of this name in it. */
  readonly only: string | undefined;
  onChange(change: ByteChange): void;
  /** A move has begun: `settleMoves` is to be called in a while. */
  onMove(): void;
  /** It does not see everything any more, and is of no more use. Called once. */
  onLost(reason: Extract<ResyncReason, "overflow" | "watch_limit" | "root_gone">): void;
}

/**
 * A directory under inotify, with the directories in it. A new one is watched first and read afterwards, so what was
 * made in it before the watch is found, and what is made later is heard of; what is both comes twice, which
 * `Coalesced` mends.
 */
export class WatchedTree {
  readonly #options: TreeOptions;
  readonly #inotify: Inotify;
  readonly #root: WatchedDirectory;
  readonly #byWatch = new Map<number, WatchedDirectory>();
  readonly #moves: UnpairedMoves;
  /** Watched, but not read yet. `tell`: what is in it is news. */
  #unread: { directory: WatchedDirectory; tell: boolean }[] = [];
  #over = false;

  constructor(options: TreeOptions) {
    this.#options = options;
    this.#inotify = new Inotify((notices) => this.#take(notices));
    this.#moves = new UnpairedMoves((left) => this.#deleted(left));
    this.#root = new WatchedDirectory({ name: options.path === "/" ? "" : options.path, parent: undefined });
  }

  /** Resolves when all of the tree is watched. Throws nothing: `onLost` says what went wrong. */
  async begin(): Promise<void> {
    this.#watch(this.#root, { tell: false });
    await this.#read();
  }

  /** Those whose other half did not come in time have left the tree. To be called now and then. */
  settleMoves(): void {
    this.#moves.settleOld();
  }

  get hasMoves(): boolean {
    return this.#moves.size > 0;
  }

  /** May be called twice. */
  close(): void {
    this.#over = true;
    this.#inotify.close();
  }

  #lose(reason: Parameters<TreeOptions["onLost"]>[0]): void {
    if (this.#over) return;
    this.close();
    this.#options.onLost(reason);
  }

  #take(notices: Notice[]): void {
    for (const notice of notices) if (!this.#over) this.#heard(notice);
    if (!this.#over) void this.#read();
  }

  #heard(notice: Notice): void {
    const { mask, name } = notice;
    const directory = this.#byWatch.get(notice.watch);
    if (mask & bits.overflow) this.#lose("overflow");
    else if (directory === undefined)
      return; // forgotten since
    else if (directory === this.#root && mask & THE_ROOT_IS_GONE) this.#lose("root_gone");
    else if (mask & bits.ignored) this.#byWatch.delete(notice.watch);
    else if (name !== "" && (this.#options.only ?? name) === name)
      this.#changed({ directory, name, mask, cookie: notice.cookie });
  }

  #changed({ directory, name, mask, cookie }: Changed): void {
    const isDirectory = (mask & bits.isDir) !== 0;
    const at = { directory, name, isDirectory };
    const from = mask & bits.movedTo ? this.#moves.claim(cookie) : undefined;
    // The name is another file's now, so the one that was moved away is not coming back to it.
    this.#moves.settle(at);
    if (from !== undefined) this.#moved(from, at);
    else if (mask & bits.movedFrom) this.#left(cookie, at);
    else if (mask & (bits.create | bits.movedTo)) this.#created(at);
    else if (mask & bits.delete) this.#deleted(at);
    else this.#tell({ type: "modified", path: directory.pathOf(name), directory: isDirectory });
  }

  #created({ directory, name, isDirectory }: Entry): void {
    this.#tell({ type: "created", path: directory.pathOf(name), directory: isDirectory });
    if (isDirectory) this.#enter(directory, name, { tell: true });
  }

  #deleted({ directory, name, isDirectory }: Entry): void {
    this.#tell({ type: "deleted", path: directory.pathOf(name), directory: isDirectory });
    this.#forget(directory.children.get(name));
  }

  #left(cookie: number, at: Entry): void {
    this.#moves.add(cookie, at);
    this.#options.onMove();
  }

  #moved(from: Entry, to: Entry): void {
    const { isDirectory } = to;
    // What was written aside and is put in its place now is new there, and that is all to be told of it.
    if (isDraft(from.name)) return void this.#created(to);
    const [before, after] = [from.directory.pathOf(from.name), to.directory.pathOf(to.name)];
    this.#tell({ type: "moved", from: before, path: after, directory: isDirectory });
    this.#forget(to.directory.children.get(to.name)); // an empty directory that it took the place of
    const moved = from.directory.children.get(from.name);
    if (moved !== undefined) moved.moveTo(to.directory, to.name);
    else if (isDirectory) this.#enter(to.directory, to.name, { tell: true });
  }

  #tell(change: ByteChange): void {
    if (!isDraft(change.path.slice(change.path.lastIndexOf("/") + 1))) this.#options.onChange(change);
  }

  #enter(parent: WatchedDirectory, name: string, { tell }: { tell: boolean }): void {
    if (!this.#options.recursive || isDraft(name)) return;
    this.#forget(parent.children.get(name));
    this.#watch(new WatchedDirectory({ name, parent }), { tell });
  }

  #watch(directory: WatchedDirectory, { tell }: { tell: boolean }): void {
    const path = Buffer.from(directory.path, "latin1");
    const watch = this.#inotify.add(path, directory === this.#root ? OF_THE_ROOT : OF_THE_REST);
    if (watch === undefined) {
      // What is gone again, is no directory any more or may not be read has nothing to tell.
      if (canBeWatched(path)) this.#lose("watch_limit");
      else if (directory === this.#root) this.#lose("root_gone");
      return;
    }
    // The same directory under another name: it was moved, and we have seen it there before we heard of it.
    this.#byWatch.get(watch)?.leave();
    directory.watch = watch;
    directory.parent?.children.set(directory.name, directory);
    this.#byWatch.set(watch, directory);
    if (this.#options.recursive) this.#unread.push({ directory, tell });
    if (this.#byWatch.size > MOST_DIRECTORIES) this.#lose("watch_limit");
  }

  #forget(directory: WatchedDirectory | undefined): void {
    if (directory === undefined) return;
    directory.leave();
    for (const one of directory.all()) {
      if (this.#byWatch.get(one.watch) !== one) continue;
      this.#byWatch.delete(one.watch);
      this.#inotify.remove(one.watch);
    }
  }

  async #read(): Promise<void> {
    let entries = 0;
    for (let next = this.#unread.pop(); next !== undefined && !this.#over; next = this.#unread.pop()) {
      const { directory, tell } = next;
      if (this.#byWatch.get(directory.watch) !== directory) continue; // gone since
      for (const name of namesIn(directory)) {
        const isDirectory = isDirectoryAt(directory.pathOf(name));
        if (isDirectory === undefined) continue; // its end will be heard of
        if (tell) this.#tell({ type: "created", path: directory.pathOf(name), directory: isDirectory });
        if (isDirectory && !directory.children.has(name)) this.#enter(directory, name, { tell });
        if (this.#over) return;
        entries += 1;
      }
      if (entries < ENTRIES_AT_ONCE) continue;
      entries = 0;
      await new Promise((resolve) => setImmediate(resolve));
    }
  }
}

interface Entry {
  readonly directory: WatchedDirectory;
  readonly name: string;
  readonly isDirectory: boolean;
}

interface Changed extends Pick<Entry, "directory" | "name"> {
  readonly mask: number;
  readonly cookie: number;
}

/** A name under which the keeper itself writes a file before it is whole. */
function isDraft(name: string): boolean {
  return name.startsWith(PENDING_PREFIX);
}

function namesIn(directory: WatchedDirectory): string[] {
  try {
    const names = readdirSync(Buffer.from(directory.path, "latin1"), { encoding: "buffer" });
    return names.map((name) => Buffer.from(name).toString("latin1"));
  } catch {
    return []; // gone, which will be heard of
  }
}

function isDirectoryAt(path: string): boolean | undefined {
  return lstatSync(Buffer.from(path, "latin1"), { throwIfNoEntry: false })?.isDirectory();
}

function canBeWatched(path: Buffer): boolean {
  try {
    readdirSync(path);
    return true;
  } catch {
    return false;
  }
}
