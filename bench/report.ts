import type { Noise, Role, Summary } from "./measure.ts";

export type Unit = "ms" | "/s" | "MB/s" | "MiB";

/** What issue or promise a figure is held against. Of a ratio (to the contender of that name), or of our own p50. */
export interface Aim {
  readonly to?: string;
  readonly atMost?: number;
  readonly atLeast?: number;
}

export interface Entry {
  readonly role: Role;
  readonly name: string;
  readonly summary: Summary;
}

/** One thing that was measured, by everybody who can do it. */
export interface Line {
  readonly group: string;
  readonly what: string;
  readonly unit: Unit;
  readonly entries: readonly Entry[];
  readonly aims: readonly Aim[];
  readonly noise?: Noise;
  /** Facts that are not times: peak memory, what was checked. */
  readonly note?: string;
}

/** A figure from one measurement only. */
export function single(value: number): Summary {
  return { p50: value, p95: value, p99: value, spread: 0, count: 1 };
}

/** Ours divided by the other's. Of times less is better, of rates more. */
export function ratioTo(line: Line, name: string): number | undefined {
  const ours = line.entries.find(({ role }) => role === "ours");
  const other = line.entries.find((entry) => entry.name === name);
  return ours && other && other.role !== "ours" ? ours.summary.p50 / other.summary.p50 : undefined;
}

/** Whether each aim is met; of a contender that was not there, nobody knows. */
export function judged(line: Line): { aim: Aim; value: number | undefined; isMet: boolean | undefined }[] {
  return line.aims.map((aim) => {
    const ours = line.entries.find(({ role }) => role === "ours");
    const value = aim.to === undefined ? ours?.summary.p50 : ratioTo(line, aim.to);
    const { atMost = Number.POSITIVE_INFINITY, atLeast = Number.NEGATIVE_INFINITY } = aim;
    return { aim, value, isMet: value === undefined ? undefined : value <= atMost && value >= atLeast };
  });
}

const HEAD =
  "| what | who | p50 | p95 | p99 | spread | ours / this | aim |\n|---|---|---:|---:|---:|---:|---:|---|\n";

/** One table for each group, as Markdown, which is readable in a terminal, too. */
export function tables(lines: readonly Line[]): string {
  const groups = [...new Set(lines.map(({ group }) => group))];
  return groups
    .map((group) => {
      const own = lines.filter((line) => line.group === group);
      const rows = own.flatMap(rowsOf).join("\n");
      const notes = own.flatMap(({ what, note }) => (note === undefined ? [] : [`- ${what}: ${note}`]));
      return [`## ${group}`, `${HEAD}${rows}`, notes.join("\n"), noiseOf(own)].filter(Boolean).join("\n\n");
    })
    .join("\n\n");
}

function rowsOf(line: Line): string[] {
  return line.entries.map((entry, i) => {
    const { p50, p95, p99, spread, count } = entry.summary;
    const shown = (value: number) => show(value, line.unit);
    const ratio = ratioTo(line, entry.name);
    const many = count > 1;
    const cells = [
      i === 0 ? line.what : "",
      entry.role === "ours" ? `**${entry.name}**` : `${entry.role}: ${entry.name}`,
      shown(p50),
      many ? shown(p95) : "",
      many ? shown(p99) : "",
      many ? `${Math.round(spread * 100)} %` : "",
      ratio === undefined ? "" : showRatio(ratio),
      aimOf(line, entry),
    ];
    return `| ${cells.join(" | ")} |`;
  });
}

function aimOf(line: Line, entry: Entry): string {
  return judged(line)
    .filter(({ aim }) => (aim.to === undefined ? entry.role === "ours" : aim.to === entry.name))
    .map(({ aim: { to, atMost, atLeast }, isMet }) => {
      const told = (value: number) => (to === undefined ? show(value, line.unit) : showRatio(value));
      const bounds = [
        atMost === undefined ? [] : [`at most ${told(atMost)}`],
        atLeast === undefined ? [] : [`at least ${told(atLeast)}`],
      ];
      return `${bounds.flat().join(", ")}: ${isMet ? "met" : "**missed**"}`;
    })
    .join("; ");
}

/** The quieter the machine, the closer p95 is to p50. */
function noiseOf(lines: readonly Line[]): string {
  const noises = lines.flatMap(({ noise }) => (noise === undefined ? [] : [noise]));
  if (noises.length === 0) return "";
  const worst = (of: (noise: Noise) => Summary) => {
    const summaries = noises.map(of).sort((a, b) => a.p95 / a.p50 - b.p95 / b.p50);
    const last = summaries.at(-1) ?? single(0);
    return `${show(last.p50, "ms")} (p95 ${show(last.p95, "ms")})`;
  };
  const parts = [
    `a fixed spin ${worst(({ spin }) => spin)}`,
    `a bare spawn of \`true\` ${worst(({ spawn }) => spawn)}`,
    `a new file ${worst(({ file }) => file)}`,
  ];
  return `Noise, at its worst in this group: ${parts.join(", ")}.`;
}

export function show(value: number, unit: Unit): string {
  const digits = value >= 100 ? 0 : value >= 10 ? 1 : 2;
  return unit === "/s" ? `${value.toFixed(digits)}/s` : `${value.toFixed(digits)} ${unit}`;
}

function showRatio(value: number): string {
  return value < 0.1 ? `1/${(1 / value).toFixed(1)}` : value.toFixed(2);
}
