import { expect, test } from "bun:test";
import { mkdirSync, mkdtempSync, readdirSync, rmSync, utimesSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { removeOldBundles } from "./bundles.ts";

const name = (digit: number) => String(digit).repeat(16);

test.each([
  ["the newest is current", 5, [3, 4, 5]],
  ["an old one is current again", 1, [1, 4, 5]],
])("three bundles stay: %s", (_, current, kept) => {
  const dir = mkdtempSync(join(tmpdir(), "holdfast-bundles-"));
  for (const digit of [2, 5, 1, 4, 3]) {
    mkdirSync(join(dir, name(digit), "lib"), { recursive: true });
    utimesSync(join(dir, name(digit)), digit, digit);
  }
  writeFileSync(join(dir, "current"), name(current));
  mkdirSync(join(dir, `.${name(6)}.123`)); // being built by somebody else
  removeOldBundles(dir, name(current));
  expect(readdirSync(dir).sort()).toEqual([`.${name(6)}.123`, ...kept.map(name), "current"]);
  rmSync(dir, { recursive: true });
});
