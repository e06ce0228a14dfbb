import { wrapped } from "./help.ts";
import { type Colour, oneLine, paint } from "./style.ts";

export interface Cell {
  text: string;
  colour?: Colour | undefined;
}

export interface TableOptions {
  head: readonly string[];
  rows: readonly (readonly (string | Cell)[])[];
  /** Columns that a narrow terminal does without, the first of them first. */
  spare?: readonly string[];
  /** The last column goes on below itself instead of being cut: for what somebody wants to read to its end. */
  wraps?: boolean;
  /** The widest a line may be. Default: the terminal's width; without one (or one that knows no width) nothing is cut. */
  width?: number;
}

const GAP = 2;
// Narrower than this a column says nothing.
const LEAST = 6;

/**
 * Columns as wide as their content. Where that is wider than the terminal, the last one is cut, then spare ones are
 * left out, then the widest are cut.
 */
export function renderTable({
  head,
  rows,
  spare = [],
  wraps = false,
  width = process.stdout.columns || Number.POSITIVE_INFINITY,
}: TableOptions): string {
  const cells = [head.map((text): Cell => ({ text, colour: "grey" })), ...rows.map((row) => row.map(toCell))];
  const columns = head.map((name, at) => ({ name, cells: cells.map((row) => row[at] ?? { text: "" }) }));
  const shown = withoutSpare(columns, { spare, width });
  const widths = fit(shown, width);
  return cells.map((_, row) => `${renderRow(shown, { row, widths, wraps })}\n`).join("");
}

interface Column {
  name: string;
  cells: readonly Cell[];
}

function withoutSpare(
  columns: readonly Column[],
  { spare, width }: { spare: readonly string[]; width: number },
): readonly Column[] {
  const [first, ...rest] = spare;
  const last = columns.at(-1);
  const cut = last === undefined ? 0 : Math.max(0, contentWidth(last) - Math.max(LEAST, last.name.length));
  if (first === undefined || lineWidth(columns.map(contentWidth)) - cut <= width) return columns;
  return withoutSpare(
    columns.filter(({ name }) => name !== first),
    { spare: rest, width },
  );
}

/** The last column gives first, then whichever is the widest, down to where it would say nothing. */
function fit(columns: readonly Column[], width: number): number[] {
  const widths = columns.map(contentWidth);
  for (let over = lineWidth(widths) - width; over > 0; over = lineWidth(widths) - width) {
    const last = widths.length - 1;
    const at = (widths[last] ?? 0) > LEAST ? last : widths.indexOf(Math.max(...widths));
    const before = widths[at] ?? 0;
    if (before <= LEAST) break;
    widths[at] = at === last ? Math.max(LEAST, before - over) : before - 1;
  }
  return widths;
}

function renderRow(
  columns: readonly Column[],
  { row, widths, wraps }: { row: number; widths: readonly number[]; wraps: boolean },
): string {
  const indent = " ".repeat(lineWidth(widths.slice(0, -1)) + GAP);
  const parts = columns.map(({ cells }, column) => {
    const { text = "", colour } = cells[row] ?? {};
    const room = widths[column] ?? 0;
    const isLast = column === columns.length - 1;
    const isWrapped = wraps && isLast && Bun.stringWidth(text) > room;
    const shown = isWrapped ? wrapped(text, room).replaceAll("\n", `\n${indent}`) : cut(text, room);
    const padding = isLast ? 0 : room + GAP - Bun.stringWidth(shown);
    return (colour === undefined ? shown : paint(colour, shown)) + " ".repeat(padding);
  });
  return parts.join("").trimEnd();
}

function contentWidth({ cells }: Column): number {
  return Math.max(...cells.map(({ text }) => Bun.stringWidth(text)));
}

function lineWidth(widths: readonly number[]): number {
  return widths.reduce((sum, one) => sum + one + GAP, -GAP);
}

function cut(text: string, width: number): string {
  if (Bun.stringWidth(text) <= width) return text;
  let kept = "";
  for (const character of text) {
    if (Bun.stringWidth(kept + character) > width - 1) break;
    kept += character;
  }
  return `${kept}…`;
}

function toCell(cell: string | Cell): Cell {
  return typeof cell === "string" ? { text: oneLine(cell) } : { ...cell, text: oneLine(cell.text) };
}
