import { type Client, HoldfastError } from "holdfast";

/** Where a conversation's calls go. */
export interface Connection {
  /** Asked for each call; sends nothing by itself. */
  client(): Promise<Client>;
  /** Told what a call failed with. */
  failed(error: unknown): void;
}

/**
 * One client for all calls: a server that was there is waited for while it restarts. After it could not be reached, or
 * did not know the token, both are looked for anew: it may have been started, or have got another token, only now.
 */
export function lastingConnection(connect: () => Promise<Client>): Connection {
  let present: Promise<Client> | undefined;
  return {
    client() {
      present ??= connect();
      return present;
    },
    failed(error) {
      const isReached =
        error instanceof HoldfastError && !["unavailable", "unauthenticated"].includes(error.code);
      if (!isReached) present = undefined;
    },
  };
}
