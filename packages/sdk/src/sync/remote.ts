import type { FileInfo } from "@holdfast/protocol";
import { HoldfastError } from "@holdfast/protocol/errors";
import {
  type BatchEntry,
  type BatchFile,
  BatchReader,
  type BatchResult,
  batchHeader,
} from "@holdfast/protocol/file-batch";
import type { Files } from "../files.ts";
import type { Scope } from "../scope.ts";
import { whyNotLink } from "./links.ts";

export interface RemoteFile {
  readonly etag: string;
  readonly sizeBytes: number;
  readonly mark: ":x" | ":-";
  /** Where it leads, if it is a symlink. */
  readonly link?: string;
}

export interface RemoteTree {
  readonly files: Map<string, RemoteFile>;
  /** Each with whether nothing is in it. */
  readonly directories: Map<string, { isEmpty: boolean }>;
  readonly skipped: { path: string; reason: string }[];
}

export interface Upload {
  readonly entry: BatchEntry;
  readonly bytes: Uint8Array;
}

/** A file of any size, which is read as it is sent. */
export interface LargeUpload {
  readonly entry: BatchEntry;
  readonly content: Blob;
}

// Deeper trees than this are no project's.
const DEPTH = 100;

/** The sandbox's side of a sync: a directory, and calls for many files at once. */
export class RemoteDirectory {
  readonly root: string;
  readonly #scope: Scope;
  readonly #files: Files;
  readonly #signal: AbortSignal | undefined;

  constructor(parts: { scope: Scope; files: Files; root: string; signal: AbortSignal | undefined }) {
    this.root = parts.root.replace(/(?<=.)\/+$/, "");
    this.#scope = parts.scope;
    this.#files = parts.files;
    this.#signal = parts.signal;
  }

  /** All files below it, without a look into them; `undefined` if there is no such directory. */
  async tree(): Promise<RemoteTree | undefined> {
    const tree: RemoteTree = { files: new Map(), directories: new Map(), skipped: [] };
    try {
      const options = { depth: DEPTH, signal: this.#signal };
      for await (const info of this.#files.list(this.root, options)) this.#add(tree, info);
      return tree;
    } catch (error) {
      const isMissing = error instanceof HoldfastError && error.code === "not_found" && error.details?.errno;
      if (isMissing) return undefined;
      throw error;
    }
  }

  /** The hashes of files; those that cannot be read are left out. */
  async hashes(paths: readonly string[]): Promise<Map<string, { etag: string; sha256: string }>> {
    const found = new Map<string, { etag: string; sha256: string }>();
    for await (const { file } of this.read(paths, "sha256"))
      if (!("error" in file) && file.sha256 !== undefined)
        found.set(file.path, { etag: file.etag, sha256: file.sha256 });
    return found;
  }

  /** Many files in one request. */
  async *read(
    paths: readonly string[],
    want: "content" | "sha256",
  ): AsyncGenerator<{ file: BatchFile; bytes: Uint8Array }> {
    if (paths.length === 0) return;
    const { client, path } = this.#scope;
    const json = { root: this.root, paths, want };
    const call = { method: "POST", path: `${path}/files/batch/read`, json, again: "safe" } as const;
    const response = await client.open({ ...call, signal: this.#signal });
    const reader = new BatchReader(response.body as unknown as AsyncIterable<Uint8Array>);
    for (let header = await reader.header(); header !== undefined; header = await reader.header()) {
      const file = header as BatchFile;
      yield { file, bytes: await joined(reader.content(file.sizeBytes), file.sizeBytes) };
    }
  }

  /** Many changes in one request, each with what became of it. */
  apply(uploads: readonly Upload[]): Promise<BatchResult[]> {
    const parts = uploads.flatMap(({ entry, bytes }) => [batchHeader(entry), bytes]);
    return this.#apply(new Blob(parts as BlobPart[]));
  }

  async applyLarge({ entry, content }: LargeUpload): Promise<BatchResult | undefined> {
    return (await this.#apply(behind(batchHeader(entry), content)))[0];
  }

  async #apply(body: Blob | ReadableStream<Uint8Array>): Promise<BatchResult[]> {
    const { client, path } = this.#scope;
    const call = {
      method: "POST",
      path: `${path}/files/batch`,
      query: { root: this.root },
      body,
      again: "never", // what was done the first time would be a conflict with itself
      signal: this.#signal,
    } as const;
    return (await client.json<{ results: BatchResult[] }>(call)).body.results;
  }

  open(path: string) {
    return this.#files.open(`${this.root}/${path}`, { root: this.root, signal: this.#signal });
  }

  async makeRoot(): Promise<void> {
    await this.#files.mkdir(this.root, { parents: true, signal: this.#signal });
  }

  #add(tree: RemoteTree, info: FileInfo): void {
    const path = info.path.slice(this.root === "/" ? 1 : this.root.length + 1);
    // Each directory comes before what is in it.
    tree.directories.set(path.slice(0, Math.max(0, path.lastIndexOf("/"))), { isEmpty: false });
    if (info.type === "directory") return void tree.directories.set(path, { isEmpty: true });
    const reason = whyNot(info, path);
    if (reason !== undefined) return void tree.skipped.push({ path, reason });
    const mark = Number.parseInt(info.mode, 8) & 0o100 ? ":x" : ":-";
    const { etag, target } = info;
    if (target !== undefined) tree.files.set(path, { etag, sizeBytes: 0, mark, link: target });
    else tree.files.set(path, { etag, sizeBytes: info.sizeBytes, mark });
  }
}

/** Not a blob of the two: not every runtime has those of a part that is a file. */
function behind(header: Uint8Array, content: Blob): ReadableStream<Uint8Array> {
  const reader = content.stream().getReader();
  return new ReadableStream<Uint8Array>({
    start: (to) => to.enqueue(header),
    async pull(to) {
      const { value, done } = await reader.read();
      if (done) to.close();
      else to.enqueue(value);
    },
    cancel: (reason) => reader.cancel(reason),
  });
}

function whyNot({ type, pathBase64, target = "", targetBase64 }: FileInfo, path: string): string | undefined {
  if (type !== "file" && type !== "symlink") return "only files and links are synced";
  if (pathBase64 !== undefined) return "its name is not UTF-8";
  if (targetBase64 !== undefined) return "where it leads is not UTF-8";
  return type === "symlink" ? whyNotLink(path, target) : undefined;
}

async function joined(content: AsyncIterable<Uint8Array>, size: number): Promise<Uint8Array> {
  const bytes = new Uint8Array(size);
  let at = 0;
  for await (const chunk of content) {
    bytes.set(chunk, at);
    at += chunk.length;
  }
  return bytes;
}
