import { TarError } from "@holdfast/protocol/tar";

/** The stream as it is; or unpacked, if it begins as gzip does. */
export async function maybeUnzipped(body: AsyncIterable<Uint8Array>): Promise<AsyncIterable<Uint8Array>> {
  const pieces = body[Symbol.asyncIterator]();
  const first: Uint8Array[] = [];
  for (let length = 0; length < 2; ) {
    const { done, value } = await pieces.next();
    if (done) break;
    first.push(value);
    length += value.length;
  }
  const head = Buffer.concat(first);
  const whole = wholeAgain(head, pieces);
  return head[0] === 0x1f && head[1] === 0x8b ? unzipped(whole) : whole;
}

async function* wholeAgain(head: Uint8Array, rest: AsyncIterator<Uint8Array>): AsyncGenerator<Uint8Array> {
  try {
    if (head.length > 0) yield head;
    for (;;) {
      const { done, value } = await rest.next();
      if (done) return;
      yield value;
    }
  } finally {
    await rest.return?.();
  }
}

async function* unzipped(zipped: AsyncGenerator<Uint8Array>): AsyncGenerator<Uint8Array> {
  const stream = new ReadableStream<Uint8Array<ArrayBuffer>>(
    {
      async pull(to) {
        const { done, value } = await zipped.next();
        if (done) to.close();
        else to.enqueue(value as Uint8Array<ArrayBuffer>);
      },
      async cancel() {
        await zipped.return(undefined);
      },
    },
    { highWaterMark: 0 },
  );
  try {
    yield* stream.pipeThrough(new DecompressionStream("gzip"));
  } catch (error) {
    throw error instanceof TypeError || isDamage(error) ? new TarError("its gzip form is damaged") : error;
  }
}

function isDamage(error: unknown): boolean {
  return error instanceof Error && "code" in error && String(error.code).startsWith("Z_");
}
