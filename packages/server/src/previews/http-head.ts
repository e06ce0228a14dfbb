/** What is before a message's body. Names are in lower case; bytes that are not ASCII are kept as Latin-1. */
export interface Head {
  readonly headers: readonly Header[];
  /** The minor number of HTTP/1. */
  readonly minor: 0 | 1;
}

export type Header = readonly [name: string, value: string];

export interface RequestHead extends Head {
  readonly method: string;
  readonly target: string;
}

export interface ResponseHead extends Head {
  readonly status: number;
  readonly reason: string;
}

/** A message that two programs could read in two ways, or that is none at all. */
export class MalformedMessage extends Error {}

const TOKEN = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]+$/;
const REQUEST_LINE = /^([!#$%&'*+\-.^_`|~0-9A-Za-z]{1,32}) (\/[!-~\x80-\xff]*|\*) HTTP\/1\.([01])$/;
const STATUS_LINE = /^HTTP\/1\.([01]) ([1-5]\d\d)(?: ([ -~\t\x80-\xff]*))?$/;
/** Nothing but what can be printed, and tabs. */
const VALUE = /^[\t -~\x80-\xff]*$/;
const MOST_HEADERS = 200;

/** As strict as a proxy must be: what is refused here cannot mean something else to the program behind. */
export function parseRequestHead(text: string): RequestHead {
  const [first = "", ...lines] = text.split("\r\n");
  const [, method, target, minor] = REQUEST_LINE.exec(first) ?? [];
  if (method === undefined || target === undefined) throw new MalformedMessage("the request line");
  if (target === "*" && method !== "OPTIONS") throw new MalformedMessage("the request's target");
  return { method, target, minor: minor === "0" ? 0 : 1, headers: parseHeaders(lines) };
}

/** Bare line feeds are taken: a sandbox's program may be three lines of shell, and the head is written anew. */
export function parseResponseHead(text: string): ResponseHead {
  const [first = "", ...lines] = text.split(/\r?\n/);
  const [, minor, status, reason = ""] = STATUS_LINE.exec(first) ?? [];
  if (status === undefined) throw new MalformedMessage("the status line");
  return { status: Number(status), reason, minor: minor === "0" ? 0 : 1, headers: parseHeaders(lines) };
}

function parseHeaders(lines: readonly string[]): Header[] {
  if (lines.length > MOST_HEADERS) throw new MalformedMessage("too many headers");
  return lines.map((line) => {
    const colon = line.indexOf(":");
    const name = line.slice(0, Math.max(colon, 0));
    const value = line.slice(colon + 1);
    // A name with a space before the colon, or a line that continues the one before, is no token.
    if (!TOKEN.test(name) || !VALUE.test(value)) throw new MalformedMessage("a header");
    return [name.toLowerCase(), value.replace(/^[ \t]+|[ \t]+$/g, "")];
  });
}

export function valuesOf({ headers }: Head, name: string): string[] {
  return headers.filter(([one]) => one === name).map(([, value]) => value);
}

/** Whether a header that lists words has this one. */
export function listsWord(head: Head, name: string, word: string): boolean {
  return valuesOf(head, name)
    .flatMap((value) => value.split(","))
    .some((one) => one.trim().toLowerCase() === word);
}

export function headBytes(firstLine: string, headers: readonly Header[]): Uint8Array {
  const lines = headers.map(([name, value]) => `${name}: ${value}\r\n`);
  return Buffer.from(`${firstLine}\r\n${lines.join("")}\r\n`, "latin1");
}
