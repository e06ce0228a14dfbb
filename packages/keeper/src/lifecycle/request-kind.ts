/**
 * What a request is to the sandbox:
 *
 *   - `own`: the server and the keeper among themselves; a handler sees to what of it is use
 *   - `look`: changes nothing, is no use, and is always answered
 *   - `end`: ends something. It is use, but nothing new begins, so an idle instance that is to be stopped does it, too
 *   - `work`: everything else, also what does not exist yet
 */
export type RequestKind = "own" | "look" | "end" | "work";

const OWN: ReadonlySet<string> = new Set([
  "/v1/keeper",
  "/v1/admit",
  "/v1/shutdown",
  "/v1/watch",
  "/v1/quiesce",
  "/v1/resume",
  "/v1/activity",
  "/v1/touch",
  "/v1/claim-fence",
  "/v1/ports/:port/connect",
]);
const ENDS: ReadonlySet<string> = new Set(["/v1/commands/:id/cancel", "/v1/processes/:id/kill"]);

/** `path` is the route's, with its `:id`. */
export function kindOf(
  path: string,
  request: { readonly method: string; readonly url: string },
): RequestKind {
  if (OWN.has(path)) return "own";
  if (path === "/v1/terminals/:id/connect") return isReadOnly(request.url) ? "look" : "work";
  if (path.startsWith("/v1/files")) return "work"; // also to read: whoever needs a file needs the sandbox
  if (request.method === "GET") return "look";
  return request.method === "DELETE" || ENDS.has(path) ? "end" : "work";
}

function isReadOnly(url: string): boolean {
  return new URL(url).searchParams.get("readonly") === "true";
}
