import { HoldfastError } from "@holdfast/protocol";
import type { Engine } from "../engine/engine.ts";

/** The git of the sandbox, or an error that says what to do. */
export function findGit({ boot }: Engine): string {
  const found = Bun.which("git", { PATH: boot.env.PATH ?? "" });
  if (found !== null) return found;
  throw new HoldfastError("unsupported", "there is no git in this sandbox", {
    hint: "install it (apt-get install git, apk add git), or create the sandbox from an image that has it",
    started: "no",
  });
}

/**
 * Settings under which git neither asks anybody, nor runs what a URL names, nor writes about what it sends. A log of
 * its own is switched off because it would tell of credentials.
 */
export const gitEnvironment = {
  GIT_TERMINAL_PROMPT: "0",
  GIT_ASKPASS: null,
  SSH_ASKPASS: null,
  GIT_ALLOW_PROTOCOL: "http:https:ssh:git:file",
  GIT_TRACE: null,
  GIT_TRACE_CURL: null,
  GIT_TRACE_PACKET: null,
  GIT_CURL_VERBOSE: null,
  LC_ALL: "C",
} as const;
