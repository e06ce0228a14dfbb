export type Side = "before" | "after";

/** One moment of a server's life: around the n-th call of a kind. */
export interface Point {
  readonly label: string;
  /** From 1. */
  readonly occurrence: number;
  readonly side: Side;
}

export function formatPoint({ label, occurrence, side }: Point): string {
  return `${label}:${occurrence}:${side}`;
}

export function parsePoint(text: string): Point {
  const [, label, occurrence, side] = /^(.+):(\d+):(before|after)$/.exec(text.trim()) ?? [];
  if (label === undefined || occurrence === undefined) throw new Error(`this is no point: ${text}`);
  return { label, occurrence: Number(occurrence), side: side as Side };
}
