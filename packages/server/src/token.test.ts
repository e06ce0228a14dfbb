import { expect, test } from "bun:test";
import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Token } from "./token.ts";

/** Says that it is ready, waits for the others, and then does what a server does at its start. */
const server = `import { existsSync } from "node:fs";
  import { Token } from ${JSON.stringify(join(import.meta.dir, "token.ts"))};
  console.log("ready");
  while (!existsSync(process.argv[1] + "/go"));
  console.log(new Token(process.argv[1], {}).current());`;

test("servers that start at the same time on one data dir have the same token, which its owner alone can read", async () => {
  const dir = mkdtempSync(join(tmpdir(), "holdfast-token-"));
  const children = Array.from({ length: 4 }, () =>
    Bun.spawn([process.execPath, "-e", server, dir], { stdio: ["ignore", "pipe", "inherit"] }),
  );
  const readers = children.map(({ stdout }) => stdout.getReader());
  for (const reader of readers) await reader.read();
  writeFileSync(join(dir, "go"), "");
  const said = await Promise.all(
    readers.map(async (reader) =>
      Buffer.from((await reader.read()).value ?? [])
        .toString()
        .trim(),
    ),
  );
  await Promise.all(children.map(({ exited }) => exited));
  const token = readFileSync(join(dir, "token"), "utf8").trim();
  expect(said).toEqual(Array(4).fill(token));
  expect([token.length, statSync(join(dir, "token")).mode & 0o777]).toEqual([43, 0o600]);
  expect(readdirSync(dir).sort()).toEqual(["go", "token"]);
  rmSync(dir, { recursive: true });
});

test("another token counts at once, also for a server that shares the data dir; the old one is worth nothing", () => {
  const dir = mkdtempSync(join(tmpdir(), "holdfast-token-"));
  const [one, other] = [new Token(dir, { given: undefined }), new Token(dir, { given: undefined })];
  const before = one.current();
  expect(other.current()).toBe(before);
  const after = one.rotate();
  expect(after).not.toBe(before);
  expect([one.current(), other.current(), readFileSync(one.path, "utf8")]).toEqual([
    after,
    after,
    `${after}\n`,
  ]);
  expect([statSync(one.path).mode & 0o777, readdirSync(dir)]).toEqual([0o600, ["token"]]);
  const fixed = new Token(dir, { given: "mine" });
  expect(fixed.current()).toBe("mine");
  expect(() => fixed.rotate()).toThrow("HOLDFAST_TOKEN");
  rmSync(dir, { recursive: true });
});
