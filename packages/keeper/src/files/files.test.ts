import { afterAll, beforeAll, expect, test } from "bun:test";
import {
  chmodSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { startTestKeeper, type TestKeeper } from "../test-keeper.ts";

let keeper: TestKeeper;
let dir: string;
beforeAll(async () => {
  keeper = await startTestKeeper();
  dir = join(keeper.dir, "work");
  mkdirSync(dir);
});
afterAll(() => keeper[Symbol.asyncDispose]());

const q = (path: string | Uint8Array, rest = "") =>
  `path=${typeof path === "string" ? encodeURIComponent(path) : bytesInQuery(path)}${rest}`;
const bytesInQuery = (path: Uint8Array) =>
  [...path].map((byte) => `%${byte.toString(16).padStart(2, "0")}`).join("");
const put = (path: string | Uint8Array, body: BodyInit, rest = "", headers = {}) =>
  keeper.request(`/v1/files?${q(path, rest)}`, { method: "PUT", body, headers });
const get = (path: string | Uint8Array, headers = {}) => keeper.request(`/v1/files?${q(path)}`, { headers });
const code = async (reply: Response) => [reply.status, (await reply.json()).error.code];

test("a file is written whole, read whole or by range, and replaced with its mode", async () => {
  const path = join(dir, "a.txt");
  const made = await put(path, "0123456789");
  expect([made.status, await made.json()]).toMatchObject([
    201,
    { path, name: "a.txt", sizeBytes: 10, mode: "0644" },
  ]);
  chmodSync(path, 0o751);
  const replaced = await put(path, "abcdefghij");
  expect([replaced.status, statSync(path).mode & 0o777]).toEqual([200, 0o751]);
  const whole = await get(path);
  expect([whole.headers.get("Content-Length"), whole.headers.get("Holdfast-File-Mode")]).toEqual([
    "10",
    "0751",
  ]);
  expect(await whole.text()).toBe("abcdefghij");
  const ranges = {
    "bytes=0-0": "a",
    "bytes=3-5": "def",
    "bytes=8-": "ij",
    "bytes=-2": "ij",
    "bytes=5-99": "fghij",
  };
  for (const [range, text] of Object.entries(ranges)) {
    const reply = await get(path, { Range: range });
    expect([range, reply.status, await reply.text()]).toEqual([range, 206, text]);
  }
  expect(await code(await get(path, { Range: "bytes=10-" }))).toEqual([400, "invalid_argument"]);
  expect(readdirSync(dir)).toEqual(["a.txt"]);
  expect(readdirSync(join(keeper.boot.stateDir, "files/pending"))).toEqual([]);
});

test("conditions: who goes by an old content changes nothing", async () => {
  const path = join(dir, "conditions");
  const { etag } = await (await put(path, "one", "", { "If-None-Match": "*" })).json();
  expect(await code(await put(path, "two", "", { "If-None-Match": "*" }))).toEqual([
    412,
    "precondition_failed",
  ]);
  expect((await put(path, "two", "", { "If-Match": `"${etag}"` })).status).toBe(200);
  expect(await code(await put(path, "three", "", { "If-Match": `"${etag}"` }))).toEqual([
    412,
    "precondition_failed",
  ]);
  expect(await code(await get(path, { "If-Match": `"${etag}"` }))).toEqual([412, "precondition_failed"]);
  expect(readFileSync(path, "utf8")).toBe("two");
  // Of many who all want to make it, one does.
  const race = Array.from({ length: 20 }, (_, i) =>
    put(join(dir, "race"), `${i}`, "", { "If-None-Match": "*" }),
  );
  expect((await Promise.all(race)).filter(({ status }) => status === 201)).toHaveLength(1);
});

test("names of any bytes: spaces, newlines, quotes, what is not UTF-8", async () => {
  const below = Buffer.from(`${dir}/names`);
  await keeper.request(`/v1/files/mkdir?${q(below)}`, { method: "POST" });
  const names = ["a b+c%20", "new\nline", "'\"$(x)", "日本", "-rf", "caf\u00e9"].map((name) =>
    Buffer.from(name),
  );
  names.push(Buffer.from([0x63, 0xe9, 0xff]), Buffer.from([0xed, 0xa0, 0x80]));
  for (const name of names) {
    const path = Buffer.concat([below, Buffer.from("/"), name]);
    expect((await put(path, name)).status).toBe(201);
    expect(Buffer.from(await (await get(path)).arrayBuffer())).toEqual(name);
  }
  const { body } = await keeper.call(`/v1/files/list?${q(below, "&hash=sha256")}`);
  const listed = body.files.map(({ path, pathBase64 }: { path: string; pathBase64?: string }) =>
    (pathBase64 === undefined ? Buffer.from(path) : Buffer.from(pathBase64, "base64")).subarray(
      below.length + 1,
    ),
  );
  expect(listed).toEqual([...names].sort(Buffer.compare));
  expect(body.files.map(({ sha256 }: { sha256: string }) => sha256)).toEqual(
    [...names].sort(Buffer.compare).map((name) => new Bun.CryptoHasher("sha256").update(name).digest("hex")),
  );
});

test("a list goes down as deep as asked, in pages that miss nothing", async () => {
  const top = join(dir, "tree");
  for (const a of ["x", "y", "z"]) {
    mkdirSync(join(top, a, "deep"), { recursive: true });
    for (let i = 0; i < 7; i++) writeFileSync(join(top, a, "deep", `f${i}`), "");
    writeFileSync(join(top, `${a}.txt`), a);
  }
  symlinkSync("/etc", join(top, "out"));
  const pathsOf = (body: { files: { path: string }[] }) =>
    body.files.map(({ path }) => path.slice(top.length + 1));
  const flat = pathsOf((await keeper.call(`/v1/files/list?${q(top)}`)).body);
  expect(flat).toEqual(["out", "x", "x.txt", "y", "y.txt", "z", "z.txt"]);
  const whole = pathsOf((await keeper.call(`/v1/files/list?${q(top, "&depth=9")}`)).body);
  expect(whole).toHaveLength(7 + 3 + 21);
  for (const limit of [1, 4, 31]) {
    const paged: string[] = [];
    for (let cursor: string | undefined = ""; cursor !== undefined; ) {
      const after: string = cursor === "" ? "" : `&cursor=${cursor}`;
      const { body } = await keeper.call(`/v1/files/list?${q(top, `&depth=9&limit=${limit}${after}`)}`);
      paged.push(...pathsOf(body));
      cursor = body.nextCursor;
    }
    expect(paged).toEqual(whole);
  }
});

test("mkdir, move, stat and delete do what they say, and refuse the rest", async () => {
  const at = (name: string) => join(dir, "ops", name);
  const post = (path: string) => keeper.request(path, { method: "POST" });
  const mkdir = (name: string, rest = "") => post(`/v1/files/mkdir?${q(at(name), rest)}`);
  const move = (from: string, to: string, rest = "") =>
    post(`/v1/files/move?from=${encodeURIComponent(at(from))}&to=${encodeURIComponent(at(to))}${rest}`);
  const remove = (name: string, rest = "") =>
    keeper.request(`/v1/files?${q(at(name), rest)}`, { method: "DELETE" });
  expect(await code(await mkdir("a/b"))).toEqual([404, "not_found"]);
  expect((await mkdir("a/b", "&parents=true&mode=0700")).status).toBe(201);
  expect((await mkdir("a/b", "&parents=true")).status).toBe(201);
  expect(await code(await mkdir("a/b"))).toEqual([409, "already_exists"]);
  writeFileSync(at("a/f"), "f");
  writeFileSync(at("g"), "g");
  symlinkSync("a/f", at("link"));
  expect(await code(await move("a/f", "g"))).toEqual([409, "already_exists"]);
  expect((await move("a/f", "g", "&overwrite=true")).status).toBe(200);
  expect(readFileSync(at("g"), "utf8")).toBe("f");
  expect((await keeper.call(`/v1/files/stat?${q(at("link"))}`)).body).toMatchObject({
    type: "symlink",
    target: "a/f",
  });
  expect((await keeper.call(`/v1/files/stat?${q(at("link"), "&follow=true")}`)).status).toBe(404);
  expect((await put(at("link"), "through")).status).toBe(201); // the link stays, what it leads to is written
  expect(
    (await keeper.call(`/v1/files/stat?${q(at("link"), "&follow=true&hash=sha256")}`)).body,
  ).toMatchObject({
    type: "file",
    sha256: new Bun.CryptoHasher("sha256").update("through").digest("hex"),
  });
  expect(await code(await remove("a"))).toEqual([409, "wrong_state"]);
  expect((await remove("a", "&recursive=true")).status).toBe(204);
  expect(await code(await remove("a"))).toEqual([404, "not_found"]);
  expect(readdirSync(join(dir, "ops")).sort()).toEqual(["g", "link"]);
});

test.each([
  ["relative", "GET", "path=etc/passwd", 400],
  ["NUL", "GET", "path=/etc/pass%00wd", 400],
  ["no path", "GET", "", 400],
  ["10,000 characters in one name", "PUT", `path=/tmp/${"x".repeat(10_000)}`, 400],
  ["256 characters in one name", "PUT", `path=/tmp/${"x".repeat(256)}`, 400],
  ["the root of all", "DELETE", "path=/&recursive=true", 409],
  ["ends in ..", "DELETE", "path=/tmp/..&recursive=true", 400],
  ["a directory", "GET", "path=/tmp", 409],
  ["a directory, to write", "PUT", "path=/tmp", 409],
  ["a device", "GET", "path=/dev/zero", 409],
  ["a device, to write", "PUT", "path=/dev/null", 409],
  ["the keeper's memory", "GET", "path=/proc/self/mem", 403],
  ["a magic link", "GET", "path=/proc/self/fd/0", 403],
  ["above its root", "GET", "path=/etc/passwd&root=/tmp", 403],
  ["beside its root", "GET", "path=/tmpx&root=/tmp", 403],
  ["out of its root", "GET", "path=/tmp/../etc/passwd&root=/tmp", 403],
  ["a query that nobody knows", "GET", "path=/tmp&colour=red", 400],
])("refused: %s", async (_, method, query, status) => {
  const reply = await keeper.request(`/v1/files?${query}`, {
    method,
    ...(method === "PUT" && { body: "x" }),
  });
  expect(reply.status).toBe(status);
  await reply.body?.cancel();
});

test("a file whose bytes are still on their way holds the sandbox awake, until the last one or the reader is gone", async () => {
  const path = join(dir, "long");
  writeFileSync(path, Buffer.alloc(64 * 1024 * 1024));
  const reply = await get(path);
  const heldAwakeBy = async () => (await keeper.call("/v1/activity?lifetimeMs=1000")).body.heldAwakeBy;
  expect(await heldAwakeBy()).toEqual(["a request is being answered"]);
  await reply.body?.cancel();
  while ((await heldAwakeBy()).length > 0) await Bun.sleep(5);
});
