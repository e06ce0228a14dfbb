import { HoldfastError } from "@holdfast/protocol";
import { type Header, headBytes, type RequestHead, valuesOf } from "./http-head.ts";

/** What a visitor is told instead of the program's answer. */
export interface Page {
  readonly status: number;
  readonly title: string;
  readonly text: string;
  /** The reason may pass by itself: a browser looks again after so many seconds. */
  readonly retrySeconds?: number;
  readonly headers?: readonly Header[];
}

/** For whatever is not there, and for whoever may not know that it is: a wrong token and a wrong name look the same. */
export const notFound: Page = {
  status: 404,
  title: "Nothing is here",
  text: "There is no such preview, or its address has changed.",
};

export const badRequest: Page = {
  status: 400,
  title: "This request cannot be passed on",
  text: "It is not well-formed HTTP/1.1.",
};

export const noSense: Page = {
  status: 502,
  title: "The program's answer makes no sense",
  text: "What listens on this port of the sandbox did not answer in HTTP, or went away in the middle.",
};

export const tooMany: Page = {
  status: 503,
  title: "Too many connections",
  text: "This preview has as many visitors as it can take.",
  retrySeconds: 2,
};

export const notReady: Page = {
  status: 503,
  title: "The server is starting",
  text: "It is looking for its sandboxes.",
  retrySeconds: 2,
};

export function movedTo(address: string, ...more: Header[]): Page {
  const headers = [["location", address] as const, ...more];
  return {
    status: 302,
    title: "Go on",
    text: "The preview is here, without the token in its address.",
    headers,
  };
}

/** Why a visit did not reach the program. The sandbox's name and state are no secrets to who has the address. */
export function pageOf(error: unknown, port: number): Page {
  if (!(error instanceof HoldfastError) || error.code === "internal")
    return { status: 502, title: "Something went wrong", text: "The server's log says what." };
  const text = `${error.message[0]?.toUpperCase()}${error.message.slice(1)}.`;
  switch (error.code) {
    case "not_found":
    case "gone":
      return notFound;
    case "unsupported":
      return { status: 501, title: "This sandbox is too old", text };
    case "wrong_state":
      return error.details?.listening === false ? nobodyListens(port) : notRunning(text);
    default:
      return { status: 503, title: "The sandbox cannot be reached now", text, retrySeconds: 2 };
  }
}

function nobodyListens(port: number): Page {
  const text = `Nothing in the sandbox listens on port ${port}. This page looks again by itself.`;
  return { status: 502, title: "Nothing listens yet", text, retrySeconds: 2 };
}

function notRunning(text: string): Page {
  const more = 'A visit does not start it: it was exposed without "wake".';
  return { status: 503, title: "The sandbox does not run", text: `${text} ${more}` };
}

/** HTML for a browser, a line of text for everybody else. The connection ends with it. */
export function pageBytes(page: Page, request?: RequestHead): Uint8Array {
  const isHtml =
    request !== undefined && valuesOf(request, "accept").some((value) => value.includes("text/html"));
  const body = Buffer.from(isHtml ? htmlOf(page) : `${page.title}. ${page.text}\n`);
  const head = headBytes(`HTTP/1.1 ${page.status} ${page.title}`, [
    ["content-type", `text/${isHtml ? "html" : "plain"}; charset=utf-8`],
    ["content-length", String(body.length)],
    ["cache-control", "no-store"],
    ["referrer-policy", "same-origin"],
    ...(page.retrySeconds === undefined ? [] : [["retry-after", String(page.retrySeconds)] as const]),
    ...(page.headers ?? []),
    ["connection", "close"],
  ]);
  return request?.method === "HEAD" ? head : Buffer.concat([head, body]);
}

function htmlOf({ title, text, retrySeconds }: Page): string {
  const again = retrySeconds === undefined ? "" : `<meta http-equiv="refresh" content="${retrySeconds}">`;
  return `<!doctype html><html lang="en"><meta charset="utf-8">${again}<title>${escaped(title)}</title>
<meta name="viewport" content="width=device-width"><style>body{font:16px/1.5 system-ui,sans-serif;max-width:34em;margin:15vh auto;padding:0 1em}</style>
<h1>${escaped(title)}</h1><p>${escaped(text)}</p></html>
`;
}

function escaped(text: string): string {
  return text.replace(/[&<>"]/g, (character) => `&#${character.charCodeAt(0)};`);
}
