import type { FileInfo, Upload } from "@holdfast/protocol";
import { HoldfastError } from "@holdfast/protocol/errors";
import { Patience } from "./backoff.ts";
import { type FilePath, fileQuery } from "./file-paths.ts";
import type { FileOptions } from "./files.ts";
import { makeId } from "./ids.ts";
import { conditionHeaders, type Scope } from "./scope.ts";

/** How a large file is sent. */
export interface UploadOptions extends FileOptions {
  /** Permissions, such as `0o755`. Without it: those of the file that is replaced, else `0o644`. */
  mode?: number | undefined;
  /** Make directories that are missing on the way. */
  parents?: boolean | undefined;
  /** The same id, path and content later go on where an earlier attempt ended, for a day. Default: a new one. */
  uploadId?: string | undefined;
  /** Put it in place only if what it replaces still has this `etag`; else `precondition_failed`. */
  ifMatch?: string | undefined;
  /** Put it in place only if there is none by then; else `precondition_failed`. */
  ifAbsent?: boolean | undefined;
  /** Called with how many bytes have arrived. */
  onProgress?: ((arrived: number) => void) | undefined;
}

// Each part is a request of its own: what is lost with a connection is at most what was on its way.
const PART_BYTES = 16 * 1024 * 1024;

/** Sends a file in parts, again and again from where the last one ended, and puts it in place when all of it is there. */
export async function uploadFile(
  scope: Scope,
  path: FilePath,
  content: Blob,
  options: UploadOptions,
): Promise<FileInfo> {
  const uploadId = options.uploadId ?? makeId("upl");
  const at = `${scope.path}/files/uploads`;
  const { signal, root, mode, parents } = options;
  const common = { headers: conditionHeaders(options), signal, again: "safe" } as const;
  const rest = {
    uploadId,
    parents,
    mode: mode === undefined ? undefined : mode.toString(8).padStart(4, "0"),
  };
  const begin = { method: "POST", path: `${at}?${fileQuery({ path, root }, rest)}`, ...common } as const;
  let { offset } = (await scope.client.json<Upload>(begin)).body;
  if (offset > content.size) throw another(uploadId);
  const patience = new Patience(scope.client.patienceMs);
  while (offset < content.size) {
    options.onProgress?.(offset);
    try {
      const query = { offset };
      const body = content.slice(offset, Math.min(offset + PART_BYTES, content.size));
      const call = {
        method: "PUT",
        path: `${at}/${uploadId}`,
        query,
        body,
        ...common,
        again: "never",
      } as const;
      offset = (await scope.client.json<Upload>(call)).body.offset;
      patience.reset();
    } catch (error) {
      if (!mayGoOn(error)) throw error;
      await patience.pause(error, signal);
      offset = (await scope.client.json<Upload>({ method: "GET", path: `${at}/${uploadId}`, ...common })).body
        .offset;
    }
  }
  options.onProgress?.(offset);
  const headers = { ...common.headers, ...replacing(options) };
  const commit = {
    method: "POST",
    path: `${at}/${uploadId}/commit`,
    ...common,
    headers,
    again: "never",
  } as const;
  return (await scope.client.json<FileInfo>(commit)).body;
}

/** What a write may replace. */
export function replacing(options: Pick<UploadOptions, "ifMatch" | "ifAbsent">): Record<string, string> {
  return {
    ...(options.ifMatch !== undefined && { "If-Match": `"${options.ifMatch}"` }),
    ...(options.ifAbsent === true && { "If-None-Match": "*" }),
  };
}

/** The connection, the server or the keeper went away; or a part that we took for lost is still arriving. */
function mayGoOn(error: unknown): boolean {
  if (!(error instanceof HoldfastError)) return false;
  return (
    ["unavailable", "keeper_lost", "quiesced"].includes(error.code) || error.details?.offset !== undefined
  );
}

function another(uploadId: string): HoldfastError {
  return new HoldfastError(
    "wrong_state",
    `upload ${uploadId} has more bytes than the file: it was of another content`,
    {
      hint: "take another uploadId",
      details: { uploadId },
    },
  );
}
