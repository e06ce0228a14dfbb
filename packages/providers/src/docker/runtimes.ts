import { HoldfastError } from "@holdfast/protocol";
import { type Info, isPodman } from "./engine-types.ts";

/** What may be chosen. Podman takes a choice and ignores it: it is its operator who chooses. */
export function runtimesOf(info: Info): string[] {
  if (isPodman(info)) return [];
  // Docker's names for its own, of a release and of the one before.
  return Object.keys(info.Runtimes ?? {}).filter((name) => !name.startsWith("io.containerd."));
}

export function assertRuntime(runtime: string | undefined, info: Info): void {
  const known = runtimesOf(info);
  if (runtime === undefined || known.includes(runtime)) return;
  throw new HoldfastError("unsupported", `this daemon has no runtime ${runtime}`, {
    hint:
      known.length === 0
        ? "Leave out `runtime`: with Podman it cannot be chosen for each sandbox."
        : `It knows: ${known.join(", ")}. Others are added in /etc/docker/daemon.json.`,
    started: "no",
  });
}
