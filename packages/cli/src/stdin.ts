import { fstatSync } from "node:fs";

/** What is on our standard input for a command: nothing, all of it, or a beginning with more to come. */
export type TakenStdin =
  | { kind: "none" }
  | { kind: "whole"; bytes: Uint8Array }
  | { kind: "stream"; chunks: AsyncIterable<Uint8Array> };

// What one request carries without a second thought.
const WHOLE_BYTES = 64 * 1024;
// `echo x | holdfast exec` is all there by now; whoever types or thinks into the pipe is not waited for.
const SETTLE_MS = 50;

/**
 * Looks at standard input. A terminal and /dev/null count as none. What ends at once is taken whole and travels with
 * the request; what is large, slow or endless becomes a stream, for the surface that can take one.
 */
export async function takeStdin({ wanted }: { wanted: boolean }): Promise<TakenStdin> {
  if (!wanted || !isPiped()) return { kind: "none" };
  const reader = Bun.stdin.stream().getReader();
  const chunks: Uint8Array[] = [];
  const deadline = Bun.sleep(SETTLE_MS);
  for (let bytes = 0; ; ) {
    const read = reader.read();
    const first = await Promise.race([read, deadline]);
    if (first === undefined) return { kind: "stream", chunks: allOf(chunks, reader, read) };
    if (first.done)
      return chunks.length === 0 ? { kind: "none" } : { kind: "whole", bytes: Buffer.concat(chunks) };
    chunks.push(first.value);
    bytes += first.value.length;
    if (bytes > WHOLE_BYTES) return { kind: "stream", chunks: allOf(chunks, reader, reader.read()) };
  }
}

function isPiped(): boolean {
  try {
    const stat = fstatSync(0);
    return stat.isFIFO() || stat.isFile() || stat.isSocket();
  } catch {
    return false; // closed: nothing can be read from it
  }
}

async function* allOf(
  taken: readonly Uint8Array[],
  reader: ReadableStreamDefaultReader<Uint8Array>,
  next: ReturnType<typeof reader.read>,
): AsyncGenerator<Uint8Array> {
  yield* taken;
  for (let read = await next; !read.done; read = await reader.read()) yield read.value;
}
