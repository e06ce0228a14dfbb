import { setTimeout as sleep } from "node:timers/promises";
import { HoldfastError } from "@holdfast/protocol";
import type { DockerApi } from "./api.ts";
import { refusalOf } from "./errors.ts";

/** Named, and not started. Returns its id. */
export async function makeContainer(api: DockerApi, name: string, json: unknown): Promise<string> {
  try {
    return await made(api, name, json);
  } catch (cause) {
    switch (refusalOf(cause)) {
      case 400:
      case 404:
        throw launchFailed(cause, name);
      case 409:
        throw new HoldfastError("already_exists", `${name} was taken by another container meanwhile`, {
          hint: "Observe it: it may be the same launch, from another server.",
          cause,
        });
      default:
        throw cause;
    }
  }
}

/** Creates at the same time that Podman gets wrong are few, and so are those that it gets wrong twice. */
const TRIES = 5;
const PAUSE_MS = 20;

async function made(api: DockerApi, name: string, json: unknown): Promise<string> {
  for (let tries = 1; ; tries++) {
    try {
      const call = { method: "POST", path: "/containers/create", query: { name }, json } as const;
      const container = await api.json<{ Id: string }>({ ...call, signal: toTheEnd() });
      return container?.Id ?? name;
    } catch (error) {
      if (tries >= TRIES || !isLookupRace(error)) throw error;
      await sleep(PAUSE_MS);
    }
  }
}

/**
 * A rootless Podman looks up which ids its user may have without a lock: of creates at the same time one may find none.
 * Nothing was made then.
 */
function isLookupRace(error: unknown): boolean {
  return error instanceof Error && error.message.includes("keep-id requires additional UIDs");
}

export async function startContainer(api: DockerApi, id: string, name: string): Promise<void> {
  try {
    await api.request({ method: "POST", path: `/containers/${id}/start`, signal: toTheEnd() });
  } catch (cause) {
    const isStorage = cause instanceof HoldfastError && cause.details?.errno !== undefined;
    if (refusalOf(cause) === undefined || isStorage) throw cause;
    throw launchFailed(cause, name);
  }
}

function launchFailed(cause: unknown, name: string): HoldfastError {
  const said = cause instanceof Error ? cause.message : String(cause);
  return new HoldfastError("launch_failed", `the container ${name} could not be started: ${said}`, {
    hint: said.includes("bind source path does not exist")
      ? "This Docker does not see the files of this machine any more: start the server again, which finds out how to reach it."
      : "Look at the image, and at what the daemon's log says.",
    cause,
  });
}

/** The caller may give up; what the daemon has begun goes on, so we wait until we know of it. */
function toTheEnd(): AbortSignal {
  return new AbortController().signal;
}
