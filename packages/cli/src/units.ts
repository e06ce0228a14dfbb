import { InvalidArgumentError } from "commander";

const unitMs = { ms: 1, s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000 } as const;

/** `500ms`, `30s`, `5m`, `2h`, `1d`; a bare number is seconds. */
export function parseDurationMs(text: string): number {
  const [, amount, unit = "s"] = /^(\d+(?:\.\d+)?)(ms|s|m|h|d)?$/.exec(text) ?? [];
  const ms = Math.round(Number(amount) * unitMs[unit as keyof typeof unitMs]);
  if (amount === undefined || ms <= 0) {
    throw new InvalidArgumentError("Give a time such as 500ms, 30s, 5m or 2h.");
  }
  return ms;
}

/** `512m`, `2g`, `1.5GiB`; a bare number is MiB. */
export function parseMebibytes(text: string): number {
  const [, amount, unit = "m"] = /^(\d+(?:\.\d+)?)([mg])?(?:i?b)?$/i.exec(text) ?? [];
  const mebibytes = Math.round(Number(amount) * (unit.toLowerCase() === "g" ? 1024 : 1));
  if (amount === undefined || mebibytes <= 0)
    throw new InvalidArgumentError("Give an amount such as 512m or 2g.");
  return mebibytes;
}

export function parseNumber(text: string): number {
  const number = Number(text);
  if (text.trim() === "" || !Number.isFinite(number) || number < 0)
    throw new InvalidArgumentError("Give a number.");
  return number;
}

export function parseCount(text: string): number {
  const number = parseNumber(text);
  if (!Number.isSafeInteger(number)) throw new InvalidArgumentError("Give a whole number.");
  return number;
}

const steps = [
  { unit: "d", ms: unitMs.d },
  { unit: "h", ms: unitMs.h },
  { unit: "m", ms: unitMs.m },
  { unit: "s", ms: unitMs.s },
] as const;

/** How long ago, in the largest unit that fits: `3d`, `4h`, `5m`, `6s`. */
export function age(at: string | undefined, now: number = Date.now()): string {
  const ms = now - Date.parse(at ?? "");
  if (Number.isNaN(ms)) return "-";
  // A clock that is a little ahead of the server's is no reason for a negative age.
  const step = steps.find((candidate) => ms >= candidate.ms);
  return step === undefined ? "0s" : `${Math.floor(ms / step.ms)}${step.unit}`;
}
