import type { FileInfo, FileList, TarResult } from "@holdfast/protocol";
import { HoldfastError } from "@holdfast/protocol/errors";
import { type FilePath, fileQuery } from "./file-paths.ts";
import { type ReadOptions, readFile } from "./read-file.ts";
import { type Conditions, conditionHeaders, type Scope } from "./scope.ts";
import type { SyncOptions, SyncResult } from "./sync/options.ts";
import { replacing, type UploadOptions, uploadFile } from "./upload.ts";

/** Options of every call about files. */
export interface FileOptions extends Conditions {
  /** A directory that the path must stay below on its whole way; what leads out is refused, also if it is swapped in. */
  root?: FilePath | undefined;
  signal?: AbortSignal | undefined;
}

/** How a file is written. */
export interface WriteOptions extends FileOptions {
  /** Permissions, such as `0o755`. Without it: those of the file that is replaced, else `0o644`. */
  mode?: number | undefined;
  /** Resolve only when it is on the disk. */
  sync?: boolean | undefined;
  /** Make directories that are missing on the way. */
  parents?: boolean | undefined;
  /** Replace it only if its `etag` is still this one; else `precondition_failed`. */
  ifMatch?: string | undefined;
  /** Write it only if there is none yet; else `precondition_failed`. */
  ifAbsent?: boolean | undefined;
}

/** What to tell about a path. */
export interface StatOptions extends FileOptions {
  /** Of what a symlink leads to, not of the link. */
  follow?: boolean | undefined;
  /** With `sha256` of a file's content. */
  hash?: "sha256" | undefined;
}

/** How deep to list, and what to tell. */
export interface ListFilesOptions extends FileOptions {
  /** 1, the default: what is in the directory itself. */
  depth?: number | undefined;
  /** With `sha256` of each file's content. */
  hash?: "sha256" | undefined;
}

/** What an archive may do. */
export interface WriteTarOptions extends FileOptions {
  /** Make directories that are missing above it. */
  parents?: boolean | undefined;
  /** Refuse an archive whose files have more bytes together. Default: 64 GiB. */
  maxBytes?: number | undefined;
  /** Refuse an archive with more entries. Default: 1,000,000. */
  maxEntries?: number | undefined;
}

/** What can be written: text, bytes, a Blob, or a stream of bytes of any length. */
export type FileContent = string | Uint8Array | Blob | ReadableStream<Uint8Array>;

/**
 * The sandbox's files. Paths are absolute. Each call is a use of the sandbox: it wakes one that sleeps.
 *
 * @example
 * ```ts
 * await sbx.files.write("/workspace/a.txt", "hi");
 * const text = await sbx.files.readText("/workspace/a.txt");
 * for await (const file of sbx.files.list("/workspace", { depth: 3 })) console.log(file.path, file.sizeBytes);
 * ```
 */
export class Files {
  readonly #scope: Scope;
  readonly #sandbox: string;

  constructor(scope: Scope, sandbox: string) {
    this.#scope = scope;
    this.#sandbox = sandbox;
  }

  /**
   * A whole file, or a range of it, in memory.
   *
   * @example
   * ```ts
   * const head = await sbx.files.read("/workspace/a.txt", { end: 16 });
   * ```
   */
  async read(path: FilePath, options: ReadOptions = {}): Promise<Uint8Array> {
    const { stream } = await this.open(path, options);
    return new Uint8Array(await new Response(stream).arrayBuffer());
  }

  /**
   * A file as text. Bytes that are not UTF-8 become U+FFFD.
   *
   * @example
   * ```ts
   * const text = await sbx.files.readText("/workspace/a.txt");
   * ```
   */
  async readText(path: FilePath, options: ReadOptions = {}): Promise<string> {
    return new TextDecoder().decode(await this.read(path, options));
  }

  /**
   * A file as a stream, of any size. If the connection breaks, it goes on where it was; if the file was changed
   * meanwhile, it fails with `precondition_failed` rather than mix two contents.
   *
   * @example
   * ```ts
   * const { stream, sizeBytes } = await sbx.files.open("/workspace/model.bin");
   * await stream.pipeTo(destination);
   * ```
   */
  open(path: FilePath, options: ReadOptions = {}) {
    return readFile(this.#scope, path, options);
  }

  /**
   * Writes a file whole or not at all: whoever reads it has the old content or the new. Mode and owner of a file that
   * is replaced are kept.
   *
   * @example
   * ```ts
   * await sbx.files.write("/workspace/run.sh", "#!/bin/sh\necho hi\n", { mode: 0o755 });
   * await sbx.files.write("/workspace/big.bin", blob.stream(), { parents: true });
   * ```
   */
  async write(path: FilePath, content: FileContent, options: WriteOptions = {}): Promise<FileInfo> {
    const { mode, sync, parents, ifMatch, ifAbsent } = options;
    const query = { mode: mode === undefined ? undefined : octal(mode), sync, parents };
    const headers = replacing(options);
    // Again with the same content is as good as once; but a stream is read only once, and a condition was met by us.
    const isRepeatable = !(content instanceof ReadableStream) && ifMatch === undefined && ifAbsent !== true;
    const body = typeof content === "string" ? new TextEncoder().encode(content) : content;
    const again = isRepeatable ? "safe" : "never";
    return this.#call({ method: "PUT", action: "", paths: { path }, query, options, headers, body, again });
  }

  /**
   * Writes a large file in parts. It goes on by itself after a lost connection or a restart, where `write` would begin
   * again; with an `uploadId` of your own, also in another program.
   *
   * @example
   * ```ts
   * await sbx.files.upload("/workspace/model.bin", Bun.file("model.bin"), { onProgress: console.log });
   * ```
   */
  upload(path: FilePath, content: Blob, options: UploadOptions = {}): Promise<FileInfo> {
    return uploadFile(this.#scope, path, content, options);
  }

  /**
   * What a path is; of a symlink, the link itself. `not_found` if there is nothing.
   *
   * @example
   * ```ts
   * const { sizeBytes, sha256 } = await sbx.files.stat("/workspace/a.txt", { hash: "sha256" });
   * ```
   */
  stat(path: FilePath, options: StatOptions = {}): Promise<FileInfo> {
    const { follow, hash } = options;
    return this.#call({ method: "GET", action: "/stat", paths: { path }, query: { follow, hash }, options });
  }

  /**
   * Whether there is anything under this path.
   *
   * @example
   * ```ts
   * if (!(await sbx.files.exists("/workspace/.git"))) console.log("not a repository");
   * ```
   */
  async exists(path: FilePath, options: StatOptions = {}): Promise<boolean> {
    try {
      await this.stat(path, options);
      return true;
    } catch (error) {
      if (isMissingFile(error)) return false;
      throw error;
    }
  }

  /**
   * What is below a directory, each directory before its content, in the order of names. Symlinks are told, not
   * followed. Reads on page by page.
   *
   * @example
   * ```ts
   * for await (const { path, type } of sbx.files.list("/workspace", { depth: 10 })) console.log(type, path);
   * ```
   */
  async *list(path: FilePath, options: ListFilesOptions = {}): AsyncGenerator<FileInfo> {
    const { depth, hash } = options;
    let cursor: string | undefined;
    do {
      const query = { depth, hash, cursor };
      const page: FileList = await this.#call({
        method: "GET",
        action: "/list",
        paths: { path },
        query,
        options,
      });
      yield* page.files;
      cursor = page.nextCursor;
    } while (cursor !== undefined);
  }

  /**
   * A directory, or a file, as a tar archive, of any size. It cannot be continued: a broken connection is an error.
   *
   * @example
   * ```ts
   * await Bun.write("app.tar", new Response(await sbx.files.readTar("/workspace/app")));
   * ```
   */
  async readTar(path: FilePath, options: FileOptions = {}): Promise<ReadableStream<Uint8Array>> {
    const { client, path: at } = this.#scope;
    const response = await client.open({
      method: "GET",
      path: `${at}/files/tar?${fileQuery({ path, root: options.root })}`,
      headers: conditionHeaders(options),
      again: "safe",
      signal: options.signal,
    });
    return response.body ?? new ReadableStream();
  }

  /**
   * Unpacks a tar archive, also a gzipped one, into a directory, which is made if there is none. An archive that is
   * refused changes nothing; each file that is replaced has its old content or its new.
   *
   * @example
   * ```ts
   * await sbx.files.writeTar("/workspace/app", Bun.file("app.tar.gz").stream());
   * ```
   */
  writeTar(
    path: FilePath,
    archive: Uint8Array | Blob | ReadableStream<Uint8Array>,
    options: WriteTarOptions = {},
  ): Promise<TarResult> {
    const { parents, maxBytes, maxEntries } = options;
    const query = { parents, maxBytes, maxEntries };
    const again = archive instanceof ReadableStream ? "never" : "safe";
    return this.#call({
      method: "PUT",
      action: "/tar",
      paths: { path },
      query,
      options,
      body: archive,
      again,
    });
  }

  /**
   * Makes a directory. With `parents`, also those above it, and one that is there already is fine.
   *
   * @example
   * ```ts
   * await sbx.files.mkdir("/workspace/a/b/c", { parents: true });
   * ```
   */
  mkdir(path: FilePath, options: FileOptions & { parents?: boolean; mode?: number } = {}): Promise<FileInfo> {
    const { parents, mode } = options;
    const query = { parents, mode: mode === undefined ? undefined : octal(mode) };
    const again = parents === true ? "safe" : "never";
    return this.#call({ method: "POST", action: "/mkdir", paths: { path }, query, options, again });
  }

  /**
   * Renames in one step, within one file system. Replaces nothing unless with `overwrite`.
   *
   * @example
   * ```ts
   * await sbx.files.move("/workspace/a.txt", "/workspace/b.txt");
   * ```
   */
  move(from: FilePath, to: FilePath, options: FileOptions & { overwrite?: boolean } = {}): Promise<FileInfo> {
    const query = { overwrite: options.overwrite };
    return this.#call({
      method: "POST",
      action: "/move",
      paths: { from, to },
      query,
      options,
      again: "never",
    });
  }

  /**
   * Deletes a file, a symlink or an empty directory; with `recursive`, a directory with all it has.
   *
   * @example
   * ```ts
   * await sbx.files.delete("/workspace/app", { recursive: true });
   * ```
   */
  async delete(path: FilePath, options: FileOptions & { recursive?: boolean } = {}): Promise<void> {
    const query = { recursive: options.recursive };
    await this.#call({ method: "DELETE", action: "", paths: { path }, query, options, again: "never" });
  }

  /**
   * Makes a directory of this machine and one of the sandbox the same, by what changed since the last time: hashed,
   * in batches, with the rules of .gitignore files. What changed on both sides is a conflict, and is touched on neither.
   *
   * @example
   * ```ts
   * const { uploaded, conflicts } = await sbx.files.sync("./app", "/workspace/app", { direction: "both" });
   * ```
   */
  async sync(localDir: string, remoteDir: string, options: SyncOptions = {}): Promise<SyncResult> {
    // A part of its own, so that a page, which has no directories, does not load it.
    const { sync } = await import("./sync/sync.ts");
    return sync({ scope: this.#scope, files: this, sandbox: this.#sandbox }, localDir, remoteDir, options);
  }

  async #call<T>(call: {
    method: "GET" | "POST" | "PUT" | "DELETE";
    action: string;
    paths: Record<string, FilePath>;
    query: Record<string, string | number | boolean | undefined>;
    options: FileOptions;
    headers?: Record<string, string>;
    body?: Uint8Array | Blob | ReadableStream<Uint8Array>;
    again?: "safe" | "never";
  }): Promise<T> {
    const { method, action, paths, query, options, headers, body, again = "safe" } = call;
    const search = fileQuery({ ...paths, root: options.root }, query);
    const answer = await this.#scope.client.json<T>({
      method,
      path: `${this.#scope.path}/files${action}?${search}`,
      headers: { ...conditionHeaders(options), ...headers },
      again,
      signal: options.signal,
      ...(body !== undefined && { body }),
    });
    return answer.body;
  }
}

function octal(mode: number): string {
  return mode.toString(8).padStart(4, "0");
}

/** The file is missing; not the sandbox, of which the server says the same. */
function isMissingFile(error: unknown): boolean {
  return error instanceof HoldfastError && error.code === "not_found" && error.details?.errno === "ENOENT";
}
