import { type Line, ratioTo } from "./report.ts";

/**
 * What a change must not make twice as bad: ratios to a floor of the same run, about twice what they were when they were
 * written down. Never times: those are the machine's. In order of the table of a short run.
 */
const limits: readonly {
  readonly what: string;
  readonly to: string;
  readonly atMost?: number;
  readonly atLeast?: number;
}[] = [{ what: "local, network none", to: "bwrap, the same namespaces and mounts", atMost: 40 }];

/** What is out of bounds, in words; also what was to be measured and was not. */
export function broken(lines: readonly Line[]): string[] {
  return limits.flatMap(({ what, to, atMost, atLeast }) => {
    const line = lines.find((one) => one.what === what);
    const ratio = line && ratioTo(line, to);
    if (ratio === undefined) return [`"${what}" was not measured beside "${to}"`];
    if (atMost !== undefined && ratio > atMost)
      return [`"${what}" is ${ratio.toFixed(2)} times "${to}"; it may be ${atMost}`];
    if (atLeast !== undefined && ratio < atLeast)
      return [`"${what}" is ${ratio.toFixed(2)} times "${to}"; it must be ${atLeast}`];
    return [];
  });
}
