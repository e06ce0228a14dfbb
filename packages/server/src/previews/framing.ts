import { type Head, MalformedMessage, type RequestHead, type ResponseHead, valuesOf } from "./http-head.ts";

/** How a message's body ends. */
export type Framing =
  | { readonly kind: "none" }
  | { readonly kind: "length"; readonly bytes: number }
  | { readonly kind: "chunked" }
  /** With the connection; only an answer's can. */
  | { readonly kind: "close" };

export function requestFraming(head: RequestHead): Framing {
  return declared(head) ?? { kind: "none" };
}

export function responseFraming(head: ResponseHead, method: string): Framing {
  const { status } = head;
  const framing = declared(head) ?? { kind: "close" };
  if (method === "HEAD" || status < 200 || status === 204 || status === 304) return { kind: "none" };
  return framing;
}

/** Two answers to where a body ends are how one request is hidden in another, so there must be at most one. */
function declared(head: Head): Framing | undefined {
  const codings = valuesOf(head, "transfer-encoding");
  const lengths = valuesOf(head, "content-length");
  if (codings.length + lengths.length > 1) throw new MalformedMessage("where its body ends is said twice");
  const [coding] = codings;
  if (coding !== undefined) {
    if (coding.toLowerCase() !== "chunked" || head.minor === 0)
      throw new MalformedMessage("its transfer coding");
    return { kind: "chunked" };
  }
  const [length] = lengths;
  if (length === undefined) return undefined;
  if (!/^\d{1,15}$/.test(length)) throw new MalformedMessage("its length");
  return length === "0" ? { kind: "none" } : { kind: "length", bytes: Number(length) };
}
