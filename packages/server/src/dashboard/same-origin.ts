/**
 * Whether a request comes from a page of this very server, so that a cookie that came along may speak for its user. A
 * browser sends the cookie also for pages on another port of the same host, and on names beside ours: a preview of a
 * sandbox is such a page.
 */
export function isFromOwnPage(request: Pick<Request, "method" | "headers">): boolean {
  const { headers } = request;
  const isRead = ["GET", "HEAD"].includes(request.method) && !headers.has("upgrade");
  const origin = headers.get("origin");
  if (origin !== null && hostOf(origin) !== headers.get("host")) return false;
  const site = headers.get("sec-fetch-site");
  if (site !== null) return site === "same-origin" || (site === "none" && isRead);
  // A browser leaves both out only over plain HTTP from another machine, and there only where it reads.
  return origin !== null || isRead;
}

/** Without the scheme: TLS may end in front of us. */
function hostOf(origin: string): string | undefined {
  return URL.canParse(origin) ? new URL(origin).host : undefined;
}
