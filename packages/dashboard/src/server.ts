import { MutationCache, QueryCache, QueryClient } from "@tanstack/react-query";
import { Client, HoldfastError } from "holdfast";

/** A page stays open over a night, and over a laptop's sleep: what was asked waits for the server, and says so. */
const PATIENCE_MS = 24 * 3_600_000;

/** The server that this page came from. The browser shows it the session's cookie by itself. */
export const client = await Client.connect({ url: location.origin, patienceMs: PATIENCE_MS });

/** Whether this browser has a session. */
export const SESSION = ["session"];

// The session's time is over, or the token was changed: there is nothing to show until somebody signs in.
const onError = (error: Error) => {
  if (isSignedOut(error)) queries.setQueryData(SESSION, false);
};

/** What was asked is true until an event says otherwise, so nothing is asked again by itself. */
export const queries: QueryClient = new QueryClient({
  queryCache: new QueryCache({ onError }),
  mutationCache: new MutationCache({ onError }),
  defaultOptions: {
    queries: { staleTime: Number.POSITIVE_INFINITY, retry: false, refetchOnWindowFocus: false },
    mutations: { retry: false },
  },
});

export interface Failure {
  readonly message: string;
  readonly hint?: string | undefined;
}

export function failureOf(error: unknown): Failure {
  if (error instanceof HoldfastError) return { message: error.message, hint: error.hint };
  return { message: error instanceof Error ? error.message : String(error) };
}

export function isSignedOut(error: unknown): boolean {
  return error instanceof HoldfastError && error.code === "unauthenticated";
}
