import { HoldfastError, type Started } from "@holdfast/protocol/errors";

/** The error of an answer that is not a success: ours if the server sent one, else what can be said about it. */
export async function failureOfAnswer(
  response: Pick<Response, "status" | "text">,
  url: string,
): Promise<HoldfastError> {
  const text = await response.text();
  const ours = HoldfastError.fromBody(parsed(text));
  if (ours !== undefined) return ours.code === "unauthenticated" ? withTokenHint(ours) : ours;
  const details = { status: response.status, body: text.slice(0, 500) };
  if ([502, 503, 504].includes(response.status)) {
    return new HoldfastError("unavailable", `the server at ${url} is not answering (${response.status})`, {
      details,
      hint: "A proxy in between answered instead. Look at the server's log, then try again.",
      started: "unknown",
    });
  }
  return new HoldfastError("internal", `${url} gave an answer that is not Holdfast's (${response.status})`, {
    details,
    hint: "Check that HOLDFAST_URL points to a Holdfast server.",
    started: "unknown",
  });
}

/** The error of a request that got no answer at all. */
export function failureOfConnection(error: unknown, url: string): HoldfastError {
  const page = pageOrigin();
  if (page !== undefined && error instanceof TypeError) return hiddenFailure(error, { url, page });
  const refused = isRefused(error);
  const started: Started = refused ? "no" : "unknown";
  const message = refused
    ? `no Holdfast server answers at ${url}`
    : `the connection to ${url} broke (${messageOf(error)})`;
  return new HoldfastError("unavailable", message, {
    cause: error,
    details: { connection: refused ? "refused" : "broken" },
    hint: refused
      ? "Start one with `npm start` (in a clone) or `holdfast serve`, or set HOLDFAST_URL to a server that runs."
      : "The server may be restarting. Ask again with the same id: what has begun goes on and never runs twice.",
    started,
  });
}

/** A browser tells a page nothing of why a request failed. */
function hiddenFailure(cause: Error, { url, page }: { url: string; page: string }): HoldfastError {
  return new HoldfastError("unavailable", `no answer of ${url} reached this page (${cause.message})`, {
    cause,
    details: { connection: "hidden" },
    hint: `Is it running? And does it let pages of ${page} call it: \`holdfast serve --allow-origin ${page}\`?`,
    started: "unknown",
  });
}

/** There may be no server at all, or none that speaks to us: to ask again would only take longer. */
export function mayNotBeThere(error: HoldfastError): boolean {
  return error.details?.connection === "refused" || error.details?.connection === "hidden";
}

/** Where the page that we are a part of is from; nothing outside of a browser. */
export function pageOrigin(): string | undefined {
  const { location, document } = globalThis as { location?: Location; document?: unknown };
  const isPage =
    document !== undefined || typeof (globalThis as { importScripts?: unknown }).importScripts === "function";
  return isPage ? location?.origin : undefined;
}

/** What was held in a sandbox is over, because the sandbox is. */
export function meansEnded(error: unknown): boolean {
  return error instanceof HoldfastError && (error.code === "gone" || error.code === "deleting");
}

// The server speaks of headers; who uses the SDK or the CLI sets a variable.
function withTokenHint({ message, details, started }: HoldfastError): HoldfastError {
  return new HoldfastError("unauthenticated", message, {
    hint: "Set HOLDFAST_TOKEN to the server's token. It is in the file `token` of its data directory, for its own user.",
    details,
    started,
  });
}

// Node hangs the code on the cause, or on one cause for every address it tried; Bun has names of its own.
function isRefused(error: unknown): boolean {
  if (!(error instanceof Error)) return false;
  const code = "code" in error ? error.code : undefined;
  if (
    typeof code === "string" &&
    /^(ECONNREFUSED|ConnectionRefused|ENOTFOUND|FailedToOpenSocket)$/.test(code)
  ) {
    return true;
  }
  if (error instanceof AggregateError) return error.errors.some(isRefused);
  return isRefused(error.cause);
}

function messageOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  return error.cause instanceof Error && error.cause.message !== "" ? error.cause.message : error.message;
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
