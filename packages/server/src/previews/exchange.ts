import type { ByteStream } from "@holdfast/keeper-link";
import { meterOf } from "./body-meter.ts";
import { type Framing, requestFraming, responseFraming } from "./framing.ts";
import { MalformedMessage, parseResponseHead, type RequestHead, type ResponseHead } from "./http-head.ts";
import { badRequest, noSense, pageBytes } from "./pages.ts";
import { readHead } from "./read-head.ts";
import { interimOutside, requestInside, responseOutside, type Visitor, wantsWebSocket } from "./rewrite.ts";

/** A visitor that still sends what nobody wants gets its answer, and a moment to stop. */
const LINGER_MS = 2_000;

export interface Exchange {
  readonly client: ByteStream;
  readonly inside: ByteStream;
  readonly request: RequestHead;
  readonly port: number;
  readonly visitor: Visitor;
}

/**
 * One request and its answer, both as they come. "again": the visitor's connection is good for another. Throws if the
 * visitor or the program broke off in the middle of the answer, which then must look broken to the visitor, too.
 */
export async function exchange(parts: Exchange): Promise<"again" | "over"> {
  const { client, inside, request, port, visitor } = parts;
  const framing = requestFraming(request);
  let isSent = false;
  let instead = noSense;
  const send = async () => {
    await inside.write(requestInside(request, { port, visitor }));
    await copyBody(client, inside, framing);
    isSent = true;
  };
  // A program may answer without having read everything; that the rest cannot be sent is no failure of the answer.
  const sending = send().catch((error: unknown) => {
    if (!(error instanceof MalformedMessage)) return;
    instead = badRequest;
    inside.destroy();
  });
  const response = await finalResponse(parts);
  if (response === undefined) {
    await client.write(pageBytes(instead, request));
    return "over";
  }
  if (response.status === 101) {
    await client.write(responseOutside(response, { port, visitor, isLast: false }));
    await splice(client, inside);
    return "over";
  }
  const body = responseFraming(response, request.method);
  const isLast = !isSent || body.kind === "close" || !staysOpen(request);
  await client.write(responseOutside(response, { port, visitor, isLast }));
  await copyBody(inside, client, body);
  if (!isLast) return "again";
  client.end();
  await Promise.race([sending, Bun.sleep(LINGER_MS)]);
  return "over";
}

/** The first answer that is not interim; `undefined` if there is none, or none that makes sense. */
async function finalResponse({ client, inside, request }: Exchange): Promise<ResponseHead | undefined> {
  for (;;) {
    const head = await responseHead(inside, request);
    if (head === undefined || head.status >= 200 || head.status === 101) return head;
    await client.write(interimOutside(head));
  }
}

async function responseHead(inside: ByteStream, request: RequestHead): Promise<ResponseHead | undefined> {
  try {
    const text = await readHead(inside);
    if (text === undefined) return undefined;
    const head = parseResponseHead(text);
    if (head.status === 101 && !wantsWebSocket(request)) return undefined;
    responseFraming(head, request.method);
    return head;
  } catch {
    return undefined;
  }
}

function staysOpen(request: RequestHead): boolean {
  return (
    request.minor === 1 &&
    !request.headers.some(([name, value]) => name === "connection" && /close/i.test(value))
  );
}

async function copyBody(from: ByteStream, to: ByteStream, framing: Framing): Promise<void> {
  const meter = meterOf(framing);
  while (!meter.isDone) {
    const bytes = await from.read();
    if (bytes === undefined) {
      if (framing.kind === "close") return;
      throw new MalformedMessage("it ended in the middle of its body");
    }
    const used = meter.take(bytes);
    if (used < bytes.length) from.unread(bytes.subarray(used));
    await to.write(bytes.subarray(0, used));
  }
}

/** Bytes both ways until both are at their end. What ends one half ends the other side's same half, and no more. */
async function splice(a: ByteStream, b: ByteStream): Promise<void> {
  await Promise.all([pour(a, b), pour(b, a)]);
}

async function pour(from: ByteStream, to: ByteStream): Promise<void> {
  for (let bytes = await from.read(); bytes !== undefined; bytes = await from.read()) await to.write(bytes);
  to.end();
}
