import { basename, posix } from "node:path";
import { UsageError } from "../failure.ts";

/** One side of a copy. */
export type Place =
  | { readonly kind: "local"; readonly path: string }
  | { readonly kind: "sandbox"; readonly sandbox: string; readonly path: string }
  | { readonly kind: "stream" };

/** `NAME:/path` is in a sandbox, `-` is our own input or output, all else is here. `./a:b` is here, too. */
export function placeOf(text: string): Place {
  if (text === "-") return { kind: "stream" };
  const match = /^([A-Za-z0-9][\w.-]*):(.*)$/s.exec(text);
  if (match === null) return { kind: "local", path: text };
  const [, sandbox = "", path = ""] = match;
  // A relative path is one of the place where commands begin.
  return { kind: "sandbox", sandbox, path: posix.join(path.startsWith("/") ? "/" : "/workspace", path) };
}

export type Direction =
  | {
      readonly to: "sandbox";
      readonly from: Place & { kind: "local" | "stream" };
      readonly into: Place & { kind: "sandbox" };
    }
  | {
      readonly to: "local";
      readonly from: Place & { kind: "sandbox" };
      readonly into: Place & { kind: "local" | "stream" };
    };

/** One side is here, the other in a sandbox. */
export function directionOf(source: Place, destination: Place): Direction {
  if (source.kind !== "sandbox" && destination.kind === "sandbox")
    return { to: "sandbox", from: source, into: destination };
  if (source.kind === "sandbox" && destination.kind !== "sandbox")
    return { to: "local", from: source, into: destination };
  if (source.kind === "sandbox")
    throw new UsageError(
      "both sides are in a sandbox",
      "Copy to this machine first, or use -: holdfast cp a:/x - | holdfast cp - b:/",
    );
  throw new UsageError("neither side is in a sandbox", "Write SANDBOX:/path for one of them.");
}

/** Into a directory that is there, or is meant to be, it goes under its own name. */
export function finalPath(path: string, source: string, { isDirectory }: { isDirectory: boolean }): string {
  return isDirectory || path.endsWith("/") ? posix.join(path, basename(source)) : path;
}
