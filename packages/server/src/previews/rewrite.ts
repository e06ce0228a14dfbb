import { withoutOurCookie } from "./cookie.ts";
import {
  type Header,
  headBytes,
  listsWord,
  type RequestHead,
  type ResponseHead,
  valuesOf,
} from "./http-head.ts";

/** Of one connection, not of the message: those on the two sides of us are two. */
const HOP_BY_HOP = ["connection", "keep-alive", "proxy-connection", "te", "upgrade"];
/** What only we may tell the program about its visitor. */
const OURS = ["host", "forwarded", "x-forwarded-host", "x-forwarded-proto", "x-forwarded-for", "x-real-ip"];

export interface Visitor {
  /** The address of the other end of the connection. */
  readonly address: string;
  readonly host: string;
  readonly scheme: "http" | "https";
  /** An operator's proxy is in front of us: what it says of the visitor counts. */
  readonly isProxied: boolean;
}

export function wantsWebSocket(head: RequestHead): boolean {
  return listsWord(head, "connection", "upgrade") && listsWord(head, "upgrade", "websocket");
}

/**
 * As the program inside gets it. Its Host is `localhost:PORT`, because development servers refuse names that they do
 * not know; the one that was visited is in X-Forwarded-Host. It is not told to close the connection afterwards: one that
 * does so without having read everything may take its answer with it. No upgrade but a WebSocket's, because another
 * protocol would pass by all of this.
 */
export function requestInside(
  head: RequestHead,
  { port, visitor }: { port: number; visitor: Visitor },
): Uint8Array {
  const dropped = new Set([...HOP_BY_HOP, ...OURS, ...namedByConnection(head)]);
  const before = visitor.isProxied ? valuesOf(head, "x-forwarded-for") : [];
  const headers: Header[] = [
    ["host", `localhost:${port}`],
    ...head.headers.filter(([name]) => !dropped.has(name)).flatMap(withoutOurCookie),
    ["x-forwarded-for", [...before, visitor.address].join(", ")],
    ["x-forwarded-host", visitor.host],
    ["x-forwarded-proto", visitor.scheme],
    ...(wantsWebSocket(head) ? upgrading : []),
  ];
  return headBytes(`${head.method} ${head.target} HTTP/1.${head.minor}`, headers);
}

const upgrading: Header[] = [
  ["connection", "Upgrade"],
  ["upgrade", "websocket"],
];
const closing: Header[] = [["connection", "close"]];

/**
 * As the visitor gets it. The name of a private preview is its key, so unless the program says otherwise, pages do not
 * tell it to others (Referer); a redirect to where the program thinks it is leads back to the preview.
 */
export function responseOutside(
  head: ResponseHead,
  { port, visitor, isLast }: { port: number; visitor: Visitor; isLast: boolean },
): Uint8Array {
  const dropped = new Set([...HOP_BY_HOP, ...namedByConnection(head)]);
  const kept = head.headers.filter(([name]) => !dropped.has(name));
  const headers: Header[] = [
    ...kept.map(
      ([name, value]): Header => [name, name === "location" ? outside(value, port, visitor) : value],
    ),
    ...(kept.some(([name]) => name === "referrer-policy")
      ? []
      : [["referrer-policy", "same-origin"] as const]),
    ...(head.status === 101 ? upgrading : isLast ? closing : []),
  ];
  return headBytes(`HTTP/1.1 ${head.status} ${head.reason}`, headers);
}

/** 100 Continue, 103 Early Hints. */
export function interimOutside({ status, reason, headers }: ResponseHead): Uint8Array {
  const kept = headers.filter(([name]) => !HOP_BY_HOP.includes(name));
  return headBytes(`HTTP/1.1 ${status} ${reason}`, kept);
}

/** What names a body's end is never dropped, whatever the header says: we go by it, and so must the program. */
function namedByConnection(head: RequestHead | ResponseHead): string[] {
  return valuesOf(head, "connection")
    .flatMap((value) => value.split(","))
    .map((name) => name.trim().toLowerCase())
    .filter((name) => name !== "transfer-encoding" && name !== "content-length");
}

function outside(location: string, port: number, { scheme, host }: Visitor): string {
  const [, rest] = /^http:\/\/(?:localhost|127\.0\.0\.1|\[::1\]):(\d+)(?=[/?#]|$)/.exec(location) ?? [];
  if (rest !== String(port)) return location;
  return location.replace(/^http:\/\/[^/?#]*/, `${scheme}://${host}`);
}
