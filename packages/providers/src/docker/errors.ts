import { HoldfastError } from "@holdfast/protocol";
import { isCode } from "../local/atomic-file.ts";
import type { Answer, Call } from "./api.ts";

/** The connection to `host` was not made, or broke off. */
export function unreachable(host: string, cause: unknown): HoldfastError {
  if (isCode(cause, "EACCES", "EPERM")) {
    return notThere(`this user may not use Docker's socket ${host}`, cause, {
      hint: 'Add the user to the group that owns the socket ("sudo usermod -aG docker $USER", then log in again). Whoever may use it is as good as root on this machine.',
    });
  }
  if (isCode(cause, "ENOENT", "ECONNREFUSED", "ENOTDIR", "EHOSTUNREACH", "ENETUNREACH", "ETIMEDOUT")) {
    return notThere(`no Docker daemon answers on ${host}`, cause, {
      hint: 'Start it ("sudo systemctl start docker"), or set DOCKER_HOST to the address of the one that runs.',
    });
  }
  if (isCode(cause, "ENOTFOUND", "EAI_AGAIN")) {
    return notThere(`the machine of ${host} cannot be found`, cause, { hint: "Look at DOCKER_HOST." });
  }
  if (isAboutCertificates(cause)) {
    return notThere(`Docker on ${host} does not prove who it is: ${said(cause)}`, cause, {
      hint: "ca.pem in DOCKER_CERT_PATH must be of the authority that made the daemon's certificate, and DOCKER_HOST a name that is in it.",
    });
  }
  return new HoldfastError("unavailable", `the connection to Docker on ${host} broke off`, {
    hint: "The daemon was probably restarted. What it had begun is looked for by name.",
    cause,
    started: "unknown",
  });
}

/** Nobody answers at all: nothing was done. */
function notThere(message: string, cause: unknown, { hint }: { hint: string }): HoldfastError {
  return new HoldfastError("provider_unavailable", message, { hint, cause, started: "no" });
}

function isAboutCertificates(cause: unknown): boolean {
  const code = (cause as NodeJS.ErrnoException).code ?? "";
  return /CERT|SSL|TLS|UNABLE_TO_VERIFY/.test(code);
}

function said(cause: unknown): string {
  return cause instanceof Error ? cause.message : String(cause);
}

export function timedOut({ method, path }: Call, cause: unknown): HoldfastError {
  return new HoldfastError("unavailable", `Docker did not answer in time: ${method} ${path}`, {
    hint: "It hangs or is overloaded: look at its log. What it had begun is looked for by name.",
    cause,
    started: "unknown",
  });
}

/** It answered, and the answer was no. `details.status` has its status. */
export function refused(
  { method, path }: Pick<Call, "method" | "path">,
  { status, bytes }: Answer,
): HoldfastError {
  const said = messageIn(bytes);
  const errno = errnoIn(said);
  if (said.includes("Client sent an HTTP request to an HTTPS server")) {
    return new HoldfastError("provider_unavailable", "this Docker speaks TLS alone", {
      hint: "Set DOCKER_TLS_VERIFY=1, and DOCKER_CERT_PATH to the folder with ca.pem, cert.pem and key.pem.",
      started: "no",
    });
  }
  return new HoldfastError("unavailable", `Docker says: ${said}`, {
    details: { status, request: `${method} ${path}`, ...(errno !== undefined && { errno }) },
    hint: "Nothing is concluded from it; it will be tried again where that makes sense.",
  });
}

/**
 * Why an image could not be fetched, with the remedy in the message: that is what a sandbox remembers of its failure.
 * A full disk, and a daemon that went away, are no failures of the pull.
 */
export function pullFailed(image: { name: string; registry: string }, cause: unknown): unknown {
  if (refusalOf(cause) === undefined || (cause as HoldfastError).details?.errno !== undefined) return cause;
  const { name, registry } = image;
  const words = said(cause).replace(/^Docker says: /, "");
  const { why, hint } = reasonOf(words, image);
  return new HoldfastError("launch_failed", `the image ${name} could not be fetched, ${why}: ${words}`, {
    details: { image: name, registry },
    hint,
    cause,
    started: "no",
  });
}

function reasonOf(words: string, { name, registry }: { name: string; registry: string }) {
  if (/manifest.*unknown|not found: manifest|no matching manifest|manifest for .* not found/i.test(words))
    return { why: "its registry has no such version", hint: `Look at the tag, and at the platform: ${name}` };
  if (/denied|unauthorized|authentication required|no basic auth credentials/i.test(words)) {
    const hint = `If it exists: docker login ${registry}, as the user that the server runs as.`;
    return { why: `it does not exist, or \`docker login ${registry}\` is needed first`, hint };
  }
  if (/dial tcp|no such host|timeout|connection refused|EOF|TLS|certificate/i.test(words))
    return { why: "the daemon cannot reach its registry", hint: `The daemon must reach ${registry}.` };
  return { why: "and the daemon says why", hint: "Look at the daemon's log." };
}

/** The status of a call that Docker refused; `undefined` of every other error. */
export function refusalOf(error: unknown): number | undefined {
  const status = error instanceof HoldfastError ? error.details?.status : undefined;
  return typeof status === "number" ? status : undefined;
}

function messageIn(bytes: Uint8Array): string {
  const text = new TextDecoder().decode(bytes);
  try {
    const { message } = JSON.parse(text) as { message?: unknown };
    if (typeof message === "string") return message.trim();
  } catch {
    // not JSON: what it is, is said as it is
  }
  return text.trim().slice(0, 1000) || "nothing";
}

/** What its file system told it, in Go's words. */
function errnoIn(said: string): string | undefined {
  if (/no space left on device/i.test(said)) return "ENOSPC";
  if (/read-only file system/i.test(said)) return "EROFS";
  if (/input\/output error/i.test(said)) return "EIO";
  return undefined;
}
