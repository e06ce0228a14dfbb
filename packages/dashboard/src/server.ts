import { QueryClient } from "@tanstack/react-query";
import { Client, HoldfastError } from "holdfast";

/** A page stays open over a night, and over a laptop's sleep: what was asked waits for the server, and says so. */
const PATIENCE_MS = 24 * 3_600_000;

/** The server that this page came from. The browser shows it the session's cookie by itself. */
export const client = await Client.connect({ url: location.origin, patienceMs: PATIENCE_MS });

/** What was asked is true until an event says otherwise, so nothing is asked again by itself. */
export const queries = new QueryClient({
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
