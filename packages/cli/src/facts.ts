import { wrapped } from "./help.ts";
import { oneLine, paint } from "./style.ts";
import { age, ahead } from "./units.ts";

/** A name and what there is to say of it; without that it is left out. */
export type Fact = readonly [name: string, value: string | undefined];

// As wide as the longest name with its colon.
const NAME_WIDTH = 13;

/** One fact a line, the values under each other, wrapped where the terminal ends. */
export function renderFacts(
  facts: readonly Fact[],
  width: number = process.stdout.columns || Number.POSITIVE_INFINITY,
): string {
  return facts
    .flatMap(([name, value]) => (value === undefined || value === "" ? [] : [[name, value] as const]))
    .map(([name, value]) => `${paint("grey", `${name}:`.padEnd(NAME_WIDTH))}${beside(value, width)}\n`)
    .join("");
}

function beside(value: string, width: number): string {
  return wrapped(oneLine(value), width - NAME_WIDTH).replaceAll("\n", `\n${" ".repeat(NAME_WIDTH)}`);
}

export function past(at: string | undefined): string | undefined {
  return at === undefined ? undefined : `${toTheSecond(at)} (${age(at)} ago)`;
}

export function future(at: string | undefined): string | undefined {
  return at === undefined ? undefined : `${toTheSecond(at)} (in ${ahead(at)})`;
}

/** Nobody reads milliseconds; `-o json` has them. */
function toTheSecond(at: string): string {
  return at.replace(/\.\d+Z$/, "Z");
}
