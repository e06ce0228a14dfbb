import { afterAll, beforeAll, expect, setDefaultTimeout, test } from "bun:test";
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { BatchReader, batchHeader } from "@holdfast/protocol";
import { startTestKeeper, type TestKeeper } from "../test-keeper.ts";

setDefaultTimeout(120_000);

let keeper: TestKeeper;
beforeAll(async () => {
  keeper = await startTestKeeper();
});
afterAll(() => keeper[Symbol.asyncDispose]());

const write = (path: string, content: string, expected: string | null = null) =>
  Buffer.concat([
    batchHeader({ op: "write", path, expected, mode: "0644", sizeBytes: content.length }),
    Buffer.from(content),
  ]);

async function apply(root: string, bytes: Uint8Array) {
  const init = { method: "POST", body: new Blob([bytes as BlobPart]) };
  return (await keeper.request(`/v1/files/batch?root=${encodeURIComponent(root)}`, init)).json();
}

async function read(root: string, paths: string[], want = "content") {
  const init = { method: "POST", body: JSON.stringify({ root, paths, want }) };
  const response = await keeper.request("/v1/files/batch/read", init);
  const reader = new BatchReader(response.body as unknown as AsyncIterable<Uint8Array>);
  const found: unknown[] = [];
  // biome-ignore lint/suspicious/noExplicitAny: what the keeper answered
  for (let file = (await reader.header()) as any; file !== undefined; file = await reader.header()) {
    let content = "";
    for await (const chunk of reader.content(file.sizeBytes)) content += Buffer.from(chunk);
    found.push([file.path, file.error?.code ?? file.sha256 ?? content]);
  }
  return found;
}

test("each entry stands for itself: conditions, and ways out of the root; a body that is cut leaves nothing", async () => {
  const root = mkdtempSync(join(keeper.dir, "root-"));
  const outside = mkdtempSync(join(keeper.dir, "outside-"));
  symlinkSync(outside, join(root, "out"));
  writeFileSync(join(outside, "secret"), "secret");
  symlinkSync(join(outside, "secret"), join(root, "link"));
  mkdirSync(join(root, "dir"));
  const first = await apply(
    root,
    Buffer.concat([write("a", "1"), write("new/deep", "2"), write("out/x", "3")]),
  );
  const [a, deep, out] = first.results;
  expect([a.etag, deep.etag, out.error.code]).toEqual([expect.any(String), expect.any(String), "forbidden"]);
  const again = await apply(
    root,
    Buffer.concat([
      write("a", "not there any more?"),
      write("new/deep", "changed", deep.etag),
      write("link", "x"),
      write("dir", "x"),
      batchHeader({ op: "delete", path: "a", expected: "another" }),
      batchHeader({ op: "delete", path: "a", expected: a.etag }),
    ]),
  );
  const told = again.results.map((one: { error?: { code: string } }) => one.error?.code ?? "done");
  expect(told).toEqual([
    ...["precondition_failed", "done", "precondition_failed", "wrong_state", "precondition_failed", "done"],
  ]);
  expect([existsSync(join(root, "a")), readFileSync(join(root, "new/deep"), "utf8")]).toEqual([
    false,
    "changed",
  ]);

  // Links are themselves what is meant: replaced, and never gone through, also where they stay inside.
  const link = (path: string, target: string, expected: string | null = null) =>
    batchHeader({ op: "link", path, target, expected });
  const linked = await apply(
    root,
    Buffer.concat([
      link("to-dir", "dir"),
      link("sub/up", "../dir"),
      link("dir", "x"),
      link("to-dir", "again"),
    ]),
  );
  const [toDir] = linked.results;
  expect(linked.results.map((one: { error?: { code: string } }) => one.error?.code ?? "done")).toEqual([
    ...["done", "done", "wrong_state", "precondition_failed"],
  ]);
  const through = await apply(
    root,
    Buffer.concat([
      write("to-dir/x", "x"),
      link("to-dir/y", "x"),
      batchHeader({ op: "delete", path: "sub/up/x", expected: null }),
      write("to-dir", "a file now", toDir.etag),
    ]),
  );
  expect(through.results.map((one: { error?: { code: string } }) => one.error?.code ?? "done")).toEqual([
    ...["forbidden", "forbidden", "forbidden", "done"],
  ]);
  expect([
    readdirSync(join(root, "dir")),
    readFileSync(join(root, "to-dir"), "utf8"),
    readlinkSync(join(root, "sub/up")),
  ]).toEqual([[], "a file now", "../dir"]);

  // A deletion takes along what is empty then, and never the root.
  const small = mkdtempSync(join(keeper.dir, "small-"));
  const [one, other] = (await apply(small, Buffer.concat([write("d/1", ""), write("d/e/f/2", "")]))).results;
  const gone = (path: string, expected: string) =>
    apply(small, batchHeader({ op: "delete", path, expected }));
  await gone("d/e/f/2", other.etag);
  expect(readdirSync(small, { recursive: true })).toEqual(["d", join("d", "1")]);
  await gone("d/1", one.etag);
  expect(readdirSync(small)).toEqual([]);

  const before = readdirSync(root);
  for (const path of ["../x", "/etc/x", "a/../../x", "a//b", "."])
    expect([path, (await apply(root, write(path, "x"))).error.code]).toEqual([path, "invalid_argument"]);
  const cut = await apply(
    root,
    Buffer.concat([write("whole", ""), write("cut", "a long content").subarray(0, -3)]),
  );
  expect(cut.results).toMatchObject([
    { path: "whole" },
    { path: "cut", error: { code: "invalid_argument" } },
  ]);
  before.push("whole");
  expect((await apply(root, Buffer.from([255, 255, 255, 255, 0]))).error.code).toBe("invalid_argument");
  expect([
    readdirSync(root).sort(),
    readdirSync(outside),
    readFileSync(join(outside, "secret"), "utf8"),
  ]).toEqual([before.sort(), ["secret"], "secret"]);

  expect(await read(root, ["new/deep", "link", "out/secret", "gone", "dir"])).toEqual([
    ["new/deep", "changed"],
    ["link", "forbidden"],
    ["out/secret", "forbidden"],
    ["gone", "not_found"],
    ["dir", "wrong_state"],
  ]);
  // More than are read at a time come in the order in which they were asked for.
  const many = Array.from({ length: 30 }, (_, i) => `many/${i}`);
  await apply(root, Buffer.concat(many.map((path) => write(path, path.repeat(400)))));
  expect(await read(root, ["gone", ...many, "gone"])).toEqual([
    ["gone", "not_found"],
    ...many.map((path) => [path, path.repeat(400)]),
    ["gone", "not_found"],
  ]);
  expect(readdirSync(join(keeper.boot.stateDir, "files/pending"))).toEqual([]);
  const sha256 = new Bun.CryptoHasher("sha256").update("changed").digest("hex");
  expect(await read(root, ["new/deep"], "sha256")).toEqual([["new/deep", sha256]]);
});
