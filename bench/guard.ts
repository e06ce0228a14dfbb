import { type Line, ratioTo } from "./report.ts";

interface Limit {
  /** A line of a short run, and who it is compared with there. */
  readonly what: string;
  readonly to: string;
  readonly atMost?: number;
  readonly atLeast?: number;
}

/** The cases that have a limit below. */
export const guarded = ["create", "exec", "session", "streaming", "terminal", "reconnect", "growth"];

/**
 * What a change must not make twice as bad: ratios to a floor or a peer of the same run, about twice what they were on
 * a quiet machine when they were written down here. Never times: those are the machine's.
 */
const limits: readonly Limit[] = [
  { what: "local, network none", to: "bwrap, the same namespaces and mounts", atMost: 4 },
  { what: "local, network none, without a spare", to: "bwrap, the same namespaces and mounts", atMost: 14 },
  { what: "local, network full, without a spare", to: "bwrap, the same namespaces and mounts", atMost: 22 },
  { what: "`true`, with bash", to: "posix_spawn in C", atMost: 2.9 },
  { what: "`true`, without a shell", to: "posix_spawn in C", atMost: 4 },
  { what: "`true` with bash, 32 callers", to: "posix_spawn in C", atLeast: 0.3 },
  { what: "back to back", to: "a bash for each call, with a sourced state file", atMost: 1.3 },
  { what: "10 ms apart", to: "a bash for each call, with a sourced state file", atMost: 1.3 },
  { what: "128 MiB out", to: "a pipe", atLeast: 0.25 },
  { what: "128 MiB in", to: "a pipe", atLeast: 0.15 },
  { what: "10 MB through one", to: "a bare PTY", atLeast: 0.12 },
  {
    what: "its start until the first command on a local sandbox",
    to: "the start of the runtime with an empty program",
    atMost: 100,
  },
  { what: "an idle tick of the reconciler, leases 10,000", to: "with 1,000", atMost: 2.5 },
  { what: "a page of 100 sandboxes, of 1,000", to: "with 200", atMost: 2.5 },
  { what: "64 KiB of a log, at an offset of MiB 64", to: "with 1", atMost: 2.2 },
  { what: "exec, sandboxes alive 20", to: "with 1", atMost: 2 },
];

/** What is out of bounds, in words; also what was to be measured and was not. Of a line measured twice the better counts. */
export function broken(lines: readonly Line[]): string[] {
  return limits.flatMap(({ what, to, atMost, atLeast }) => {
    const ratios = lines
      .filter((line) => line.what === what)
      .map((line) => ratioTo(line, to))
      .filter((ratio) => ratio !== undefined);
    if (ratios.length === 0) return [`"${what}" was not measured beside "${to}"`];
    const [least, most] = [Math.min(...ratios), Math.max(...ratios)];
    if (atMost !== undefined && least > atMost)
      return [`"${what}" is ${least.toFixed(2)} times "${to}"; it may be ${atMost} times that`];
    if (atLeast !== undefined && most < atLeast)
      return [`"${what}" is ${most.toFixed(2)} times "${to}"; it must be ${atLeast} times that`];
    return [];
  });
}
