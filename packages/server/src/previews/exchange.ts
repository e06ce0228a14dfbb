import type { ByteStream } from "@holdfast/keeper-link";
import { meterOf } from "./body-meter.ts";
import { type Framing, requestFraming, responseFraming } from "./framing.ts";
import {
  listsWord,
  MalformedMessage,
  parseResponseHead,
  type RequestHead,
  type ResponseHead,
} from "./http-head.ts";
import { badRequest, noSense, pageBytes } from "./pages.ts";
import { readHead } from "./read-head.ts";
import { interimOutside, requestInside, responseOutside, type Visitor, wantsWebSocket } from "./rewrite.ts";

/** A visitor that still sends what nobody wants gets its answer, and a moment to stop. */
const LINGER_MS = 2_000;

export interface Exchange {
  readonly client: ByteStream;
  readonly inside: ByteStream;
  /** The program may have closed it just now: that it does not answer at all is `NothingHeard`. */
  readonly isUsed: boolean;
  readonly request: RequestHead;
  readonly port: number;
  readonly visitor: Visitor;
}

/** Which of the two connections is good for another exchange. */
export interface Outcome {
  readonly client: "again" | "over";
  readonly inside: "again" | "over";
}

const BOTH_OVER: Outcome = { client: "over", inside: "over" };

export class NothingHeard extends Error {}

/**
 * One request and its answer, both as they come. Throws if the visitor or the program broke off in the middle of the
 * answer, which then must look broken to the visitor, too.
 */
export async function exchange(parts: Exchange): Promise<Outcome> {
  const { client, inside, request, port, visitor } = parts;
  const framing = requestFraming(request);
  let isSent = false;
  let instead = noSense;
  const send = async () => {
    await copyMessage(client, inside, { head: requestInside(request, { port, visitor }), framing });
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
    return BOTH_OVER;
  }
  if (response.status === 101) {
    await client.write(responseOutside(response, { port, visitor, isLast: false }));
    await splice(client, inside);
    return BOTH_OVER;
  }
  const body = responseFraming(response, request.method);
  const isLast = !isSent || body.kind === "close" || !staysOpen(request);
  const head = responseOutside(response, { port, visitor, isLast });
  await copyMessage(inside, client, { head, framing: body });
  if (!isLast) return { client: "again", inside: staysOpen(response) ? "again" : "over" };
  client.end();
  await Promise.race([sending, Bun.sleep(LINGER_MS)]);
  return BOTH_OVER;
}

/** The first answer that is not interim; `undefined` if there is none, or none that makes sense. */
async function finalResponse({
  client,
  inside,
  request,
  isUsed,
}: Exchange): Promise<ResponseHead | undefined> {
  for (let mayBeClosed = isUsed; ; mayBeClosed = false) {
    const head = await responseHead(inside, { request, mayBeClosed });
    if (head === undefined || head.status >= 200 || head.status === 101) return head;
    await client.write(interimOutside(head));
  }
}

async function responseHead(
  inside: ByteStream,
  { request, mayBeClosed }: { request: RequestHead; mayBeClosed: boolean },
): Promise<ResponseHead | undefined> {
  let isHeard = false;
  const heard = () => {
    isHeard = true;
  };
  const text = await readHead(inside, heard).catch(() => undefined);
  if (mayBeClosed && !isHeard) throw new NothingHeard();
  return text === undefined ? undefined : sensible(text, request);
}

function sensible(text: string, request: RequestHead): ResponseHead | undefined {
  try {
    const head = parseResponseHead(text);
    responseFraming(head, request.method);
    return head.status === 101 && !wantsWebSocket(request) ? undefined : head;
  } catch {
    return undefined;
  }
}

function staysOpen(head: RequestHead | ResponseHead): boolean {
  return head.minor === 1 && !listsWord(head, "connection", "close");
}

/** A head of ours, and a body as it comes: in one piece, if some of it is there already. */
async function copyMessage(
  from: ByteStream,
  to: ByteStream,
  { head, framing }: { head: Uint8Array; framing: Framing },
): Promise<void> {
  const meter = meterOf(framing);
  let before: Uint8Array | undefined = head;
  if (meter.isDone || from.waiting === 0) {
    await to.write(head);
    before = undefined;
  }
  while (!meter.isDone) {
    const bytes = await from.read();
    if (bytes === undefined) {
      if (framing.kind === "close") return;
      throw new MalformedMessage("it ended in the middle of its body");
    }
    const used = meter.take(bytes);
    if (used < bytes.length) from.unread(bytes.subarray(used));
    const body = bytes.subarray(0, used);
    await to.write(before === undefined ? body : Buffer.concat([before, body]));
    before = undefined;
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
