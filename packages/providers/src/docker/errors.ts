import { HoldfastError } from "@holdfast/protocol";
import { isCode } from "../local/atomic-file.ts";
import type { Answer, Call } from "./api.ts";

/** Nobody answers on the socket at all: nothing was done. */
export function unreachable(socket: string, cause: unknown): HoldfastError {
  if (isCode(cause, "EACCES", "EPERM")) {
    return new HoldfastError("provider_unavailable", `this user may not use Docker's socket ${socket}`, {
      hint: 'Add the user to the group that owns the socket ("sudo usermod -aG docker $USER", then log in again). Whoever may use it is as good as root on this machine.',
      cause,
      started: "no",
    });
  }
  if (isCode(cause, "ENOENT", "ECONNREFUSED", "ENOTDIR")) {
    return new HoldfastError("provider_unavailable", `no Docker daemon answers on ${socket}`, {
      hint: 'Start it ("sudo systemctl start docker"), or set DOCKER_HOST to the socket of the one that runs.',
      cause,
      started: "no",
    });
  }
  return new HoldfastError("unavailable", `the connection to Docker on ${socket} broke off`, {
    hint: "The daemon was probably restarted. What it had begun is looked for by name.",
    cause,
    started: "unknown",
  });
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
  return new HoldfastError("unavailable", `Docker says: ${said}`, {
    details: { status, request: `${method} ${path}`, ...(errno !== undefined && { errno }) },
    hint: "Nothing is concluded from it; it will be tried again where that makes sense.",
  });
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
