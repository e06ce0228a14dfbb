import { oneLine, paint } from "./style.ts";
import { age, ahead } from "./units.ts";

/** A name and what there is to say of it; without that it is left out. */
export type Fact = readonly [name: string, value: string | undefined];

/** One fact a line, the values under each other. */
export function renderFacts(facts: readonly Fact[]): string {
  return facts
    .flatMap(([name, value]) => (value === undefined || value === "" ? [] : [[name, value] as const]))
    .map(([name, value]) => `${paint("grey", `${name}:`.padEnd(12))} ${oneLine(value)}\n`)
    .join("");
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
