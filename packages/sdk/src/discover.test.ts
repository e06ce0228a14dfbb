import { afterAll, expect, test } from "bun:test";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { discover, type ServerAddress } from "./discover.ts";

const dir = mkdtempSync(`${tmpdir()}/holdfast-discover-`);
writeFileSync(`${dir}/token`, "from-file\n");
afterAll(() => rmSync(dir, { recursive: true }));

const local = "http://127.0.0.1:4750";

const cases: [string, ServerAddress, Record<string, string>, { url: string; token: string | undefined }][] = [
  ["the data directory's token", { dataDir: dir }, {}, { url: local, token: "from-file" }],
  ["the environment", {}, { HOLDFAST_DATA_DIR: dir }, { url: local, token: "from-file" }],
  ["a token wins over the file", { dataDir: dir }, { HOLDFAST_TOKEN: "t" }, { url: local, token: "t" }],
  [
    "options win",
    { token: "o", url: "http://x/" },
    { HOLDFAST_TOKEN: "t", HOLDFAST_URL: "http://y" },
    { url: "http://x", token: "o" },
  ],
  ["no file", { dataDir: `${dir}/none` }, {}, { url: local, token: undefined }],
  [
    "another host never gets our file",
    { dataDir: dir, url: "http://10.0.0.9:4750" },
    {},
    { url: "http://10.0.0.9:4750", token: undefined },
  ],
  [
    "nor one that only looks like us",
    { dataDir: dir, url: "http://127.0.0.1.evil.test" },
    {},
    { url: "http://127.0.0.1.evil.test", token: undefined },
  ],
];

test.each(["foo", "127.0.0.1:4750", "ftp://x", "http://"])(
  "%s is refused before anything is sent",
  async (url) => {
    await expect(discover({}, { HOLDFAST_URL: url })).rejects.toMatchObject({ code: "invalid_argument" });
  },
);

test.each(cases)("%s", async (_, address, env, found) => {
  expect(await discover(address, env)).toEqual(found);
});
