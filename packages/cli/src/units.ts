import { InvalidArgumentError } from "commander";

const unitMs = { ms: 1, s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000 } as const;

/** `500ms`, `30s`, `5m`, `2h`, `1d`; a bare number is seconds. */
export function parseDurationMs(text: string): number {
  const ms = durationMsOf(text);
  if (ms === undefined) throw new InvalidArgumentError("Give a time such as 500ms, 30s, 5m or 2h.");
  return ms;
}

function durationMsOf(text: string): number | undefined {
  const [, amount, unit = "s"] = /^(\d+(?:\.\d+)?)(ms|s|m|h|d)?$/.exec(text) ?? [];
  const ms = Math.round(Number(amount) * unitMs[unit as keyof typeof unitMs]);
  return amount === undefined || ms <= 0 ? undefined : ms;
}

/** The same in whole seconds, for what the server counts in seconds. */
export function parseSeconds(text: string): number {
  const ms = durationMsOf(text);
  if (ms === undefined || ms % 1000 !== 0)
    throw new InvalidArgumentError("Give whole seconds, such as 30s, 15m, 2h or 3d.");
  return ms / 1000;
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
  return Number.isNaN(ms) ? "-" : span(ms);
}

/** How far ahead, in the same units; `0s` for what is due. */
export function ahead(at: string, now: number = Date.now()): string {
  return span(Date.parse(at) - now);
}

/** A duration in the largest unit that fits. */
export function span(ms: number): string {
  // A clock that is a little ahead of the server's is no reason for a negative age.
  const step = steps.find((candidate) => ms >= candidate.ms);
  return step === undefined ? "0s" : `${Math.floor(ms / step.ms)}${step.unit}`;
}

/** Bytes in the largest unit that fits: `512M`, `3.5G`. */
export function amount(bytes: number): string {
  const gibibytes = bytes / 1024 ** 3;
  if (gibibytes < 1) return `${Math.round(bytes / 1024 ** 2)}M`;
  return `${gibibytes < 10 ? gibibytes.toFixed(1) : Math.round(gibibytes)}G`;
}
