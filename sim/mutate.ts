import { readFileSync } from "node:fs";
import { mutants } from "./mutants.ts";

/** Breaks the product in one place, in this process alone, as that file is loaded. Product code knows nothing of it. */
export function applyMutant(name: string): void {
  const mutant = mutants.find((one) => one.name === name);
  if (mutant === undefined)
    throw new Error(`there is no mutant "${name}": ${mutants.map((one) => one.name).join(", ")}`);
  const { file, find, replace } = mutant;
  const path = new URL(`../${file}`, import.meta.url).pathname;
  const source = readFileSync(path, "utf8");
  const parts = source.split(find);
  // A line that was moved or changed must be noticed, or the mutant would be no mutant.
  if (parts.length !== 2)
    throw new Error(`mutant "${name}": its text occurs ${parts.length - 1} times in ${file}`);
  const contents = parts.join(replace);
  Bun.plugin({
    name: `mutant ${name}`,
    setup(build) {
      const filter = new RegExp(`${path.replace(/[.*+?^${}()|[\]\\]/g, "\\$&")}$`);
      build.onLoad({ filter }, () => ({ contents, loader: "ts" }));
    },
  });
}
