import { afterAll, beforeAll, expect, test } from "bun:test";
import { mkdirSync, mkdtempSync, realpathSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Mount } from "@holdfast/protocol";
import { resolveMounts } from "./mounts.ts";

let root: string;
const socket = createServer();

beforeAll(async () => {
  root = mkdtempSync(join(realpathSync(tmpdir()), "holdfast-mounts-"));
  for (const dir of ["open/sub", "read", "secret", "data/open"])
    mkdirSync(join(root, dir), { recursive: true });
  writeFileSync(join(root, "open/file"), "");
  symlinkSync("../secret", join(root, "open/out"));
  symlinkSync("open", join(root, "alias"));
  await new Promise<void>((resolve) => socket.listen(join(root, "open/socket"), resolve));
});

afterAll(() => {
  socket.close();
  rmSync(root, { recursive: true });
});

function resolve(mount: Pick<Mount, "source" | "writable">, { asRoot = false } = {}): Promise<Mount[]> {
  const allowed = [
    { dir: join(root, "alias"), readOnly: false },
    { dir: join(root, "read"), readOnly: true },
    { dir: join(root, "data/open"), readOnly: false },
  ];
  const rules = { allowed, dataDir: join(root, "data"), asRoot };
  return resolveMounts([{ ...mount, source: join(root, mount.source), target: "/x" }], rules);
}

test("what is really in an allowed directory may be mounted, however it is called", async () => {
  const source = join(root, "open/sub");
  for (const name of ["open/sub", "alias/sub"])
    expect(await resolve({ source: name })).toEqual([{ source, target: "/x" }]);
  expect(await resolve({ source: "open/file", writable: true })).toMatchObject([{ writable: true }]);
  expect(await resolve({ source: "read" }, { asRoot: true })).toHaveLength(1);
});

const refused: Record<string, [Pick<Mount, "source" | "writable">, RegExp, { asRoot?: boolean }?]> = {
  "beside an allowed directory": [{ source: "secret" }, /does not allow it$/],
  "a link that leads out": [{ source: "open/out" }, /does not allow it \(it leads to .*secret\)/],
  "above an allowed directory": [{ source: "" }, /does not allow it/],
  "not there": [{ source: "open/none" }, /not there/],
  "writing what may be read": [{ source: "read", writable: true }, /only reading/],
  "writing as root": [{ source: "open", writable: true }, /root's work/, { asRoot: true }],
  "our own data, also where it was allowed": [{ source: "data/open" }, /server's own data/],
  "a socket": [{ source: "open/socket" }, /neither a directory nor a file/],
};

for (const [title, [mount, message, options]] of Object.entries(refused)) {
  test(`refused: ${title}`, async () => {
    await expect(resolve(mount, options)).rejects.toMatchObject({
      code: "forbidden",
      message: expect.stringMatching(message),
      hint: expect.any(String),
    });
  });
}
