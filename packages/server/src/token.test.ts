import { expect, test } from "bun:test";
import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

/** Says that it is ready, waits for the others, and then does what a server does at its start. */
const server = `import { existsSync } from "node:fs";
  import { loadToken } from ${JSON.stringify(join(import.meta.dir, "token.ts"))};
  console.log("ready");
  while (!existsSync(process.argv[1] + "/go"));
  console.log(loadToken(process.argv[1]).token);`;

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
