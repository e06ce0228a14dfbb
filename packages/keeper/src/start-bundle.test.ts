import { expect, test } from "bun:test";
import { join } from "node:path";

test("a keeper starts without zod: that comes with the first part that is needed", async () => {
  const files = await filesAtStart();
  expect(files.length).toBeGreaterThan(20);
  expect(files.filter((file) => file.includes("node_modules"))).toEqual([]);
});

/** What is in the built program's first chunk, and in those that it imports before it runs. */
async function filesAtStart(): Promise<string[]> {
  const { metafile } = await Bun.build({
    entrypoints: [join(import.meta.dir, "main.ts")],
    target: "bun",
    splitting: true,
    metafile: true,
  });
  const chunks = metafile?.outputs ?? {};
  const entry = Object.keys(chunks).find((name) => chunks[name]?.entryPoint?.endsWith("keeper/src/main.ts"));
  const found = new Set([entry ?? ""]);
  for (const name of found) {
    const imports = chunks[name]?.imports.filter(({ kind }) => kind === "import-statement") ?? [];
    for (const { path } of imports) found.add(path);
  }
  return [...found].flatMap((name) => Object.keys(chunks[name]?.inputs ?? {}));
}
