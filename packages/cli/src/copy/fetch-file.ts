import { dlopen } from "bun:ffi";
import { randomUUID } from "node:crypto";
import {
  closeSync,
  constants,
  fchmodSync,
  fstatSync,
  ftruncateSync,
  openSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeSync,
} from "node:fs";
import { basename, dirname, join } from "node:path";
import { type FileInfo, HoldfastError, type Sandbox } from "holdfast";
import type { Progress } from "./progress.ts";

/** What comes out of a sandbox gathers under such a name, beside the place that it is for. */
export const DRAFT_PREFIX = ".holdfast-cp-";

export interface Fetch {
  readonly sandbox: Sandbox;
  /** What is copied, and what was found there. */
  readonly source: string;
  readonly info: FileInfo;
  /** Where it goes. */
  readonly path: string;
  readonly progress: Progress;
}

/**
 * Copies one file here, whole or not at all. What has come when it is interrupted stays, under a name that says of
 * which version of which file it is: the same copy, asked for again, goes on behind it if the file is still that
 * version, and begins anew if it is not. Two versions are never mixed.
 */
export async function fetchFile(fetch: Fetch): Promise<void> {
  const { draft, opened } = await begun(fetch);
  try {
    if (opened !== undefined) await take(draft, opened.stream, fetch.progress);
    fchmodSync(draft.fd, (opened?.mode ?? Number.parseInt(fetch.info.mode, 8)) & 0o777);
    renameSync(draft.path, fetch.path);
  } catch (error) {
    if (!mayGoOn(error)) rmSync(draft.path, { force: true });
    throw error;
  } finally {
    closeSync(draft.fd);
  }
}

interface Draft {
  readonly path: string;
  readonly fd: number;
  readonly sizeBytes: number;
}

type Opened = Awaited<ReturnType<Sandbox["files"]["open"]>>;

/** The draft, and the rest of the file; nothing is opened where all of it had come. */
async function begun(fetch: Fetch): Promise<{ draft: Draft; opened?: Opened }> {
  const { sandbox, source, info } = fetch;
  const draft = earlierDraft(fetch);
  if (draft !== undefined) {
    if (draft.sizeBytes === info.sizeBytes) return { draft };
    try {
      const opened = await sandbox.files.open(source, { start: draft.sizeBytes, ifMatch: info.etag });
      return { draft, opened };
    } catch (error) {
      closeSync(draft.fd);
      if (!isCode(error, "precondition_failed")) throw error;
    }
  }
  const opened = await sandbox.files.open(source);
  try {
    return { draft: newDraft(fetch, opened.etag), opened };
  } catch (error) {
    await opened.stream.cancel();
    throw error;
  }
}

/** What an interrupted copy of this very version has left, if nobody else is at it. */
function earlierDraft(fetch: Fetch): Draft | undefined {
  const path = draftPath(fetch, fetch.info.etag);
  if (statSync(path, { throwIfNoEntry: false }) === undefined) return undefined;
  const draft = lockedDraft(path);
  if (draft !== undefined && draft.sizeBytes > 0 && draft.sizeBytes <= fetch.info.sizeBytes) return draft;
  if (draft !== undefined) closeSync(draft.fd);
  return undefined;
}

/** An empty one. Where another copy of the same is under way, one that only we know, and that nobody goes on with. */
function newDraft(fetch: Fetch, etag: string): Draft {
  removeOlder(fetch, etag);
  const draft = lockedDraft(draftPath(fetch, etag));
  if (draft === undefined) {
    const path = join(dirname(fetch.path), `${DRAFT_PREFIX}${randomUUID()}`);
    return { path, fd: openSync(path, "wx", 0o600), sizeBytes: 0 };
  }
  ftruncateSync(draft.fd, 0);
  return { ...draft, sizeBytes: 0 };
}

/** `undefined` if somebody else has it. The lock ends with its process. */
function lockedDraft(path: string): Draft | undefined {
  const { O_RDWR, O_CREAT, O_NOFOLLOW } = constants;
  const fd = openSync(path, O_RDWR | O_CREAT | O_NOFOLLOW, 0o600);
  const { ino, size } = fstatSync(fd);
  // Until we had the lock, another may have finished it: then it is in its place, and no draft any more.
  if (lock(fd) && statSync(path, { throwIfNoEntry: false })?.ino === ino)
    return { path, fd, sizeBytes: size };
  closeSync(fd);
  return undefined;
}

function draftPath(fetch: Fetch, etag: string): string {
  const { copy, version } = draftName(fetch, etag);
  return join(dirname(fetch.path), `${copy}${version}`);
}

/** Which copy, and of which version. After a power cut nobody knows what of a draft is on the disk: it is another then. */
function draftName({ sandbox, source, path }: Fetch, etag: string): { copy: string; version: string } {
  return {
    copy: `${DRAFT_PREFIX}${digest([sandbox.id, source, basename(path)])}-`,
    version: digest([etag, bootId()]),
  };
}

/** Of versions that are no more. One that somebody is at stays. */
function removeOlder(fetch: Fetch, etag: string): void {
  const dir = dirname(fetch.path);
  const { copy, version } = draftName(fetch, etag);
  for (const name of readdirSync(dir)) {
    if (!name.startsWith(copy) || name === copy + version) continue;
    const older = lockedDraft(join(dir, name));
    if (older === undefined) continue;
    rmSync(older.path, { force: true });
    closeSync(older.fd);
  }
}

async function take(draft: Draft, stream: ReadableStream<Uint8Array>, progress: Progress): Promise<void> {
  let at = draft.sizeBytes;
  // On this thread: for pieces of a socket's size, the way to another costs more than the write.
  for await (const piece of progress.counting(stream, at)) {
    for (let done = 0; done < piece.length; )
      done += writeSync(draft.fd, piece, done, piece.length - done, at + done);
    at += piece.length;
  }
}

function mayGoOn(error: unknown): boolean {
  return error instanceof HoldfastError && error.retryable;
}

function isCode(error: unknown, code: string): boolean {
  return error instanceof HoldfastError && error.code === code;
}

function digest(parts: readonly string[]): string {
  return new Bun.CryptoHasher("sha256").update(JSON.stringify(parts)).digest("hex").slice(0, 16);
}

function bootId(): string {
  return readFileSync("/proc/sys/kernel/random/boot_id", "utf8").trim();
}

const LOCK_EXCLUSIVELY_OR_NOT_AT_ALL = 2 | 4;

function lock(fd: number): boolean {
  const { symbols } = dlopen("libc.so.6", { flock: { args: ["i32", "i32"], returns: "i32" } });
  return symbols.flock(fd, LOCK_EXCLUSIVELY_OR_NOT_AT_ALL) === 0;
}
