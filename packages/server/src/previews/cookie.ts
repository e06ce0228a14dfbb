import { type Header, type RequestHead, valuesOf } from "./http-head.ts";

/**
 * The other way to show a token: a name goes through resolvers and over the wire as it is, also under TLS, a cookie does
 * not. A visit with the token in its query is sent on to the same address without it, with the cookie.
 */
const COOKIE = "holdfast-preview";
export const TOKEN_PARAMETER = "holdfast-token";

export function tokensInCookies(request: RequestHead): string[] {
  return valuesOf(request, "cookie")
    .flatMap((value) => value.split(";"))
    .map((pair) => pair.trim())
    .filter((pair) => pair.startsWith(`${COOKIE}=`))
    .map((pair) => pair.slice(COOKIE.length + 1));
}

/** The program gets all cookies but ours. */
export function withoutOurCookie([name, value]: Header): Header[] {
  if (name !== "cookie" || !value.includes(COOKIE)) return [[name, value]];
  const others = value.split(";").filter((pair) => !pair.trim().startsWith(`${COOKIE}=`));
  return others.length === 0 ? [] : [[name, others.join(";").trim()]];
}

/** The token in a request's query, and its target without it. */
export function tokenInTarget({ method, target }: RequestHead): { token: string; rest: string } | undefined {
  if (method !== "GET" || !target.includes(`${TOKEN_PARAMETER}=`)) return undefined;
  const [path = "/", query = ""] = target.split("?", 2);
  const pairs = query.split("&");
  const token = pairs.find((pair) => pair.startsWith(`${TOKEN_PARAMETER}=`));
  if (token === undefined) return undefined;
  const others = pairs.filter((pair) => pair !== token).join("&");
  return { token: token.slice(TOKEN_PARAMETER.length + 1), rest: others === "" ? path : `${path}?${others}` };
}

/** Not for scripts, and not from other sites' pages. */
export function cookieHeader(token: string, scheme: "http" | "https"): Header {
  const secure = scheme === "https" ? "; Secure" : "";
  return ["set-cookie", `${COOKIE}=${token}; Path=/; HttpOnly; SameSite=Lax${secure}`];
}
