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

export interface RemoteFile {
  readonly etag: string;
  readonly sizeBytes: number;
  readonly mark: ":x" | ":-";
}

export interface RemoteTree {
  readonly files: Map<string, RemoteFile>;
  readonly skipped: { path: string; reason: string }[];
}

export interface Upload {
  readonly entry: BatchEntry;
  readonly bytes: Uint8Array;
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
    const tree: RemoteTree = { files: new Map(), skipped: [] };
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
  async apply(uploads: readonly Upload[]): Promise<BatchResult[]> {
    const { client, path } = this.#scope;
    const parts = uploads.flatMap(({ entry, bytes }) => [batchHeader(entry), bytes]);
    const call = {
      method: "POST",
      path: `${path}/files/batch`,
      query: { root: this.root },
      body: new Blob(parts as BlobPart[]),
      again: "never", // what was done the first time would be a conflict with itself
      signal: this.#signal,
    } as const;
    return (await client.json<{ results: BatchResult[] }>(call)).body.results;
  }

  /** A file too large for a batch. */
  async write(path: string, content: Blob, options: { expected: string | null; mode: string }) {
    const { expected, mode } = options;
    return this.#files.write(`${this.root}/${path}`, content, {
      root: this.root,
      parents: true,
      mode: Number.parseInt(mode, 8),
      signal: this.#signal,
      ...(expected === null ? { ifAbsent: true } : { ifMatch: expected }),
    });
  }

  open(path: string) {
    return this.#files.open(`${this.root}/${path}`, { root: this.root, signal: this.#signal });
  }

  async makeRoot(): Promise<void> {
    await this.#files.mkdir(this.root, { parents: true, signal: this.#signal });
  }

  #add(tree: RemoteTree, info: FileInfo): void {
    if (info.type === "directory") return;
    const path = info.path.slice(this.root === "/" ? 1 : this.root.length + 1);
    const mark = Number.parseInt(info.mode, 8) & 0o100 ? ":x" : ":-";
    if (info.type !== "file") tree.skipped.push({ path, reason: "only files are synced" });
    else if (info.pathBase64 !== undefined) tree.skipped.push({ path, reason: "its name is not UTF-8" });
    else tree.files.set(path, { etag: info.etag, sizeBytes: info.sizeBytes, mark });
  }
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
