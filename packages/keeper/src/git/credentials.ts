import { closeSync, writeSync } from "node:fs";
import type { GitCredentials } from "@holdfast/protocol";
import { makeNonBlocking, makePipe } from "../engine/libc.ts";

/**
 * Credentials for one run of git, in a pipe that it inherits as descriptor 3: they are in no file, argument,
 * environment, URL or log, and end with the run. git asks a helper for them, and scopes that to the URL's host, so a
 * redirect to another host gets nothing. All other helpers are switched off, because git offers each what worked, to
 * keep it.
 */
export class OneTimeCredentials {
  readonly descriptor: number;
  readonly config: readonly string[];

  constructor(url: string, { username, password }: GitCredentials) {
    const { readFd, writeFd } = makePipe();
    this.descriptor = readFd;
    makeNonBlocking(writeFd);
    // Once for each process of git that asks: the first one, checkouts that fetch what was left out, submodules.
    for (let i = 0; i < TIMES; i++) writeSync(writeFd, `username=${username}\npassword=${password}\n\n`);
    closeSync(writeFd);
    const { origin } = new URL(url);
    this.config = [
      "credential.helper=",
      `credential.${origin}.helper=`,
      `credential.${origin}.helper=${HELPER}`,
      "core.askPass=",
    ];
  }

  /** Our end; git has its own. */
  close(): void {
    closeSync(this.descriptor);
  }
}

// With the longest credentials this is less than a pipe holds.
const TIMES = 7;

// `read` takes a line and not a byte more from a pipe, so the next process finds the next record.
const HELPER =
  '!f() { test "$1" = get || exit 0; while IFS= read -r line <&3 && test -n "$line"; do printf "%s\\n" "$line"; done; }; f';
