import {
  existsSync,
  linkSync,
  lstatSync,
  readdirSync,
  readFileSync,
  realpathSync,
  renameSync,
  rmSync,
  type Stats,
  statSync,
  symlinkSync,
  unlinkSync,
} from "node:fs";
import { dirname, join } from "node:path";
import { isCode } from "./atomic-file.ts";
import { commonEtcFiles, hostEtcFiles, ownEtcFiles } from "./etc-files.ts";
import type { Layout } from "./layout.ts";
import { nameserverLine } from "./network.ts";
import { makeDir, writeOwned } from "./owned-files.ts";
import { seccompProgram } from "./seccomp.ts";

/**
 * What all sandboxes of this data dir see alike, or are started with: made once, not for each of them. A mount for each
 * file of /etc would take bubblewrap as long as everything else that it does.
 *
 *     shared/etc/          as it is inside, for what is a file; directories of the host are mounted over empty ones
 *     shared/seccomp.bpf   the system call filter
 *     shared/resolv.conf   for network `full`
 *
 * Running sandboxes look into it: a file is replaced at once, never changed, and what something is mounted over stays.
 */
export class SharedFiles {
  readonly #dir: string;
  readonly #etc: string;
  readonly #host: string;
  /** What each entry was made of. */
  readonly #made = new Map<string, string>();

  constructor({ shared }: Pick<Layout, "shared">, { hostEtc = "/etc" } = {}) {
    this.#host = hostEtc;
    this.#dir = shared;
    this.#etc = join(shared, "etc");
  }

  /** Brings all of it up to date with the host. May be called again, and by another server. */
  refresh(): SharedView {
    if (!existsSync(this.#etc)) this.#made.clear();
    if (this.#made.size === 0) this.#begin();
    const host = this.#names().map((name) => ({ name, found: look(join(this.#host, name)) }));
    for (const { name, found } of host) this.#update(name, found);
    return {
      etc: this.#etc,
      files: [
        ...Object.keys(commonEtcFiles),
        ...host.filter(({ found }) => isFile(found)).map(({ name }) => name),
      ],
      dirs: host.filter(({ found }) => found?.isDirectory()).map(({ name }) => name),
      resolvConf: join(this.#dir, "resolv.conf"),
      seccomp: join(this.#dir, "seccomp.bpf"),
    };
  }

  #names(): string[] {
    return hostEtcFiles(this.#host);
  }

  #begin(): void {
    makeDir(this.#dir, { mode: 0o711 });
    makeDir(this.#etc, { mode: 0o755 });
    removeOthers(
      this.#etc,
      new Set(["mtab", ...ownEtcFiles, ...Object.keys(commonEtcFiles), ...this.#names()]),
    );
    for (const [name, text] of Object.entries(commonEtcFiles)) this.#put(join("etc", name), text);
    for (const name of ownEtcFiles) this.#makeOnce(name, (draft) => writeOwned(draft, "", { mode: 0o644 }));
    this.#makeOnce("mtab", (draft) => symlinkSync("/proc/self/mounts", draft));
    this.#put("resolv.conf", nameserverLine);
    this.#put("seccomp.bpf", seccompProgram());
  }

  #update(name: string, found: Stats | undefined): void {
    const stamp = found === undefined ? "nothing" : [found.mode, found.ino, found.size, found.ctimeMs].join();
    if (this.#made.get(name) === stamp) return;
    const place = join(this.#etc, name);
    if (found !== undefined) makeDirs(this.#etc, dirname(name));
    if (found?.isDirectory()) makeMountPoint(place);
    else if (isFile(found)) this.#take(name);
    else clear(place);
    this.#made.set(name, stamp);
  }

  /** A copy, or a link to where it really is, if that is seen inside. */
  #take(name: string): void {
    const source = realpathSync(join(this.#host, name));
    if (source.startsWith("/usr/")) this.#place(join("etc", name), (draft) => symlinkSync(source, draft));
    else this.#put(join("etc", name), readFileSync(source));
  }

  #put(name: string, content: string | Uint8Array): void {
    this.#place(name, (draft) => writeOwned(draft, content, { mode: 0o644 }));
  }

  #place(name: string, make: (draft: string) => void): void {
    const draft = this.#draft(make);
    const place = join(this.#dir, name);
    if (lstatSync(place, { throwIfNoEntry: false })?.isDirectory()) clear(place);
    renameSync(draft, place);
  }

  /** Never in place of one that is there: a sandbox of another server may have its own mounted over it. */
  #makeOnce(name: string, make: (draft: string) => void): void {
    const draft = this.#draft(make);
    unless(["EEXIST"], () => linkSync(draft, join(this.#etc, name)));
    rmSync(draft);
  }

  #draft(make: (draft: string) => void): string {
    const draft = join(this.#dir, `.new-${process.pid}`);
    rmSync(draft, { force: true });
    make(draft);
    return draft;
  }
}

export interface SharedView {
  /** To be seen as /etc. */
  readonly etc: string;
  /** In it: what is whole. */
  readonly files: readonly string[];
  /** In it: where the host's directory of this name is to be mounted. */
  readonly dirs: readonly string[];
  /** For network `full`. */
  readonly resolvConf: string;
  readonly seccomp: string;
}

/** What it leads to, if we may look there. */
function look(path: string): Stats | undefined {
  try {
    return statSync(path, { throwIfNoEntry: false });
  } catch (error) {
    if (isCode(error, "EACCES", "ENOTDIR", "ELOOP")) return undefined;
    throw error;
  }
}

/** One that everybody on the host may read. */
function isFile(found: Stats | undefined): boolean {
  return found?.isFile() === true && (found.mode & 0o004) !== 0;
}

/** For everybody, as all that is on the way to a file. */
function makeDirs(etc: string, below: string): void {
  if (below === ".") return;
  makeDirs(etc, dirname(below));
  makeDir(join(etc, below), { mode: 0o755 });
}

function makeMountPoint(place: string): void {
  const found = lstatSync(place, { throwIfNoEntry: false });
  // By now another server may have done so, and made the directory.
  if (found?.isDirectory() === false) unless(["ENOENT", "EISDIR", "EPERM"], () => unlinkSync(place));
  makeDir(place, { mode: 0o755 });
}

function clear(place: string): void {
  rmSync(place, { recursive: true, force: true });
}

function unless(codes: readonly string[], work: () => void): void {
  try {
    work();
  } catch (error) {
    if (!isCode(error, ...codes)) throw error;
  }
}

/** Left by a release that showed more. An empty directory may be what something is mounted over. */
function removeOthers(dir: string, names: ReadonlySet<string>, below = ""): void {
  for (const entry of readdirSync(join(dir, below), { withFileTypes: true })) {
    const name = join(below, entry.name);
    if (entry.isDirectory()) removeOthers(dir, names, name);
    else if (!names.has(name)) rmSync(join(dir, name), { force: true });
  }
}
