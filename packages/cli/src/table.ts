import { type Colour, oneLine, paint } from "./style.ts";

export interface Cell {
  text: string;
  colour?: Colour | undefined;
}

export interface TableOptions {
  head: readonly string[];
  rows: readonly (readonly (string | Cell)[])[];
  /** The widest a line may be. Default: the terminal's width; without one (or one that knows no width) nothing is cut. */
  width?: number;
}

const GAP = 2;

/** Columns as wide as their content. Where that is wider than the terminal, the last column is cut. */
export function renderTable({
  head,
  rows,
  width = process.stdout.columns || Number.POSITIVE_INFINITY,
}: TableOptions): string {
  const cells = [head.map((text): Cell => ({ text, colour: "grey" })), ...rows.map((row) => row.map(toCell))];
  const widths = head.map((_, column) =>
    Math.max(...cells.map((row) => Bun.stringWidth(row[column]?.text ?? ""))),
  );
  return cells.map((row) => `${renderRow(row, widths, width)}\n`).join("");
}

function renderRow(row: readonly Cell[], widths: readonly number[], width: number): string {
  let left = width;
  const parts = row.map((cell, column) => {
    const isLast = column === row.length - 1;
    const text = cut(cell.text, Math.max(1, left));
    const padding = isLast ? 0 : (widths[column] ?? 0) + GAP - Bun.stringWidth(text);
    left -= (widths[column] ?? 0) + GAP;
    return (cell.colour === undefined ? text : paint(cell.colour, text)) + " ".repeat(Math.max(0, padding));
  });
  return parts.join("").trimEnd();
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
