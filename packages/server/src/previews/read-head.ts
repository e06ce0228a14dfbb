import type { ByteStream } from "@holdfast/keeper-link";
import { MalformedMessage } from "./http-head.ts";

/** No browser or framework comes near; cookies are most of it. */
const MOST_BYTES = 64 * 1024;

/**
 * Everything up to the first empty line, without it; the rest stays in the stream. `undefined` if the stream ended
 * before the first byte.
 */
export async function readHead(stream: ByteStream, onFirstByte = () => {}): Promise<string | undefined> {
  let text: Buffer = Buffer.alloc(0);
  for (;;) {
    const bytes = await stream.read();
    if (bytes === undefined) {
      if (text.length === 0) return undefined;
      throw new MalformedMessage("it ended in the middle of its head");
    }
    if (text.length === 0) onFirstByte();
    const searchFrom = Math.max(0, text.length - 3);
    text = withoutLeadingLines(text.length === 0 ? Buffer.from(bytes) : Buffer.concat([text, bytes]));
    const end = endOfHead(text, searchFrom);
    if (end !== undefined) {
      stream.unread(text.subarray(end.after));
      return text.toString("latin1", 0, end.at);
    }
    if (text.length > MOST_BYTES) throw new MalformedMessage("its head is too large");
  }
}

/** Some clients send an empty line after a body, which belongs to nothing. */
function withoutLeadingLines(text: Buffer): Buffer {
  let at = 0;
  while (at < 4 && text[at] === 13 && text[at + 1] === 10) at += 2;
  return text.subarray(at);
}

/** Bare line feeds end it, too: whether they are taken is for whoever parses it. */
function endOfHead(text: Buffer, from: number): { at: number; after: number } | undefined {
  for (let feed = text.indexOf(10, from); feed !== -1; feed = text.indexOf(10, feed + 1)) {
    const at = text[feed - 1] === 13 ? feed - 1 : feed;
    if (text[feed + 1] === 10) return { at, after: feed + 2 };
    if (text[feed + 1] === 13 && text[feed + 2] === 10) return { at, after: feed + 3 };
  }
  return undefined;
}
