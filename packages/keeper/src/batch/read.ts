import {
  type BatchFile,
  type BatchReadRequest,
  batchHeader,
  HoldfastError,
  MAX_BATCHED_BYTES,
} from "@holdfast/protocol";
import { etagOf, hashOf, readAt } from "../files/describe.ts";
import { about } from "../files/failures.ts";
import { O, stat, typeOf } from "../files/fs-calls.ts";
import { openTarget, type Target } from "../files/paths.ts";
import { targetOf, told } from "./apply.ts";

const NOTHING = Buffer.alloc(0);

// A read goes to another thread and back, which takes longer than a small file does. That many are in memory.
const READ_TOGETHER = 8;

/** Many files in one answer: their content, or its hash. One that cannot be read is told with the reason. */
export async function* readBatch({ root, paths, want }: BatchReadRequest): AsyncGenerator<Uint8Array> {
  for (let at = 0; at < paths.length; at += READ_TOGETHER) {
    const together = paths.slice(at, at + READ_TOGETHER).map((path) => readOne({ root, path, want }));
    for (const { header, content } of await Promise.all(together)) {
      yield header;
      if (content.length > 0) yield content;
    }
  }
}

async function readOne(one: { root: string; path: string; want: BatchReadRequest["want"] }) {
  const target = targetOf(one.root, one.path);
  let content: Buffer = NOTHING;
  const outcome = await told(one.path, () =>
    about(target, async () => {
      const { bytes, ...facts } = await read(target, one.want);
      content = bytes;
      return facts;
    }),
  );
  return { header: batchHeader({ sizeBytes: content.length, ...outcome } satisfies BatchFile), content };
}

async function read(target: Target, want: BatchReadRequest["want"]) {
  // Not blocking: a pipe without a writer would hold us for ever.
  using file = openTarget(target, O.RDONLY | O.NOFOLLOW | O.NONBLOCK);
  const facts = stat(file.fd, new Uint8Array(0));
  if (typeOf(facts) !== "file") throw notBatched(target, `is no file but a ${typeOf(facts)}`);
  const mode = (facts.mode & 0o777).toString(8).padStart(4, "0");
  const etag = etagOf(facts);
  if (want === "sha256") return { bytes: NOTHING, etag, mode, sha256: await hashOf(file.fd) };
  if (facts.size > MAX_BATCHED_BYTES) throw notBatched(target, "is too large for a batch");
  const bytes = await contentOf(file.fd, facts.size);
  // What was written while we read shows in the etag: then it may be half of one and half of the other.
  if (etagOf(stat(file.fd, new Uint8Array(0))) !== etag)
    throw notBatched(target, "was changed while it was read");
  return { bytes, etag, mode };
}

async function contentOf(fd: number, size: number): Promise<Buffer> {
  const bytes = Buffer.allocUnsafe(size);
  for (let at = 0; at < size; ) {
    const length = await readAt(fd, { buffer: bytes.subarray(at), at });
    if (length === 0) return bytes.subarray(0, at);
    at += length;
  }
  return bytes;
}

function notBatched({ path }: Target, why: string): HoldfastError {
  return new HoldfastError("wrong_state", `${path} ${why}`, { details: { path: path.toString() } });
}
