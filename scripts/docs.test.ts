import { expect, test } from "bun:test";
import { existsSync, readFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { httpStatusOf } from "@holdfast/protocol";

const root = resolve(import.meta.dir, "..");
const read = (path: string) => readFileSync(join(root, path), "utf8");
const documents = ["README.md", "ARCHITECTURE.md", "SCOPE.md", "CONTRIBUTING.md", "CHANGELOG.md"].concat([
  ...new Bun.Glob("docs/*.md").scanSync(root),
]);

test("docs/errors.md has every code with its status, and no other", () => {
  const listed = [...read("docs/errors.md").matchAll(/^\| `(\w+)` \| (\d+) \|/gm)].map((row) => [
    row[1],
    Number(row[2]),
  ]);
  expect(Object.fromEntries(listed)).toEqual(httpStatusOf);
});

test("every file and link that a document names exists", () => {
  const missing = documents.flatMap((document) => {
    const links = [...read(document).matchAll(/\]\(([^)#:]+)\)/g)].map((match) =>
      join(document, "..", match[1] ?? ""),
    );
    const named = [
      ...read(document).matchAll(/`((?:packages|scripts|e2e|bench|docs)\/[\w./-]+\.(?:ts|md|mjs|bash))`/g),
    ];
    return [...links, ...named.map((match) => match[1] ?? "")]
      .filter((path) => !existsSync(join(root, path)))
      .map((path) => `${document} names ${path}`);
  });
  expect(missing).toEqual([]);
});
