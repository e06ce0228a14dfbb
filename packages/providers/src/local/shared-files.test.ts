import { afterAll, beforeEach, expect, test } from "bun:test";
import {
  chmodSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Machine } from "../../fixtures/machine.ts";
import { layoutOf } from "./layout.ts";
import { SharedFiles } from "./shared-files.ts";

const dir = mkdtempSync(join(tmpdir(), "holdfast-shared-"));
afterAll(() => rmSync(dir, { recursive: true }));

let host: string;
let serial = 0;
const layout = () => layoutOf(join(dir, String(serial)));
const inEtc = (name: string) => join(layout().shared, "etc", name);
const open = () => new SharedFiles(layout(), { hostEtc: host });

beforeEach(() => {
  host = join(dir, `etc${++serial}`);
  mkdirSync(join(host, "ssl/certs"), { recursive: true });
  mkdirSync(layout().dataDir);
  writeFileSync(join(host, "profile"), "first");
  writeFileSync(join(host, "shadow"), "secret");
  writeFileSync(join(host, "services"), "not for all", { mode: 0o600 });
  symlinkSync("/usr/lib/os-release", join(host, "os-release"));
});

test("what is on the list and for everybody is shared: files as copies, what is below /usr as links, directories as places", () => {
  const view = open().refresh();
  expect(view.dirs).toEqual(["ssl/certs"]);
  expect(view.files).toEqual(["passwd", "group", "nsswitch.conf", "shells", "os-release", "profile"]);
  expect(readdirSync(view.etc).sort()).toEqual(
    [...view.files, "hostname", "hosts", "mtab", "resolv.conf", "ssl"].sort(),
  );
  expect(readFileSync(inEtc("profile"), "utf8")).toBe("first");
  expect(readlinkSync(inEtc("os-release"))).toBe("/usr/lib/os-release");
  expect(statSync(inEtc("profile")).mode & 0o777).toBe(0o644);
});

test("what changes on the host is replaced, also by a server that did not make it; what something is mounted over stays", () => {
  const shared = open();
  shared.refresh();
  const before = ["profile", "hosts", "resolv.conf", "ssl/certs"].map((name) => lstatSync(inEtc(name)).ino);
  for (const [server, text] of [
    [shared, "second"],
    [open(), "third one"],
  ] as const) {
    writeFileSync(join(host, "profile"), text);
    server.refresh();
    expect(readFileSync(inEtc("profile"), "utf8")).toBe(text);
  }
  const after = ["profile", "hosts", "resolv.conf", "ssl/certs"].map((name) => lstatSync(inEtc(name)).ino);
  expect(after.slice(1)).toEqual(before.slice(1));
});

test("what is not there any more, or for everybody, or on the list, is not seen any more", () => {
  const shared = open();
  writeFileSync(join(host, "timezone"), "here");
  shared.refresh();
  writeFileSync(inEtc("older-release.conf"), "once on the list");
  rmSync(join(host, "timezone"));
  chmodSync(join(host, "profile"), 0o600);
  expect(shared.refresh().files).not.toContain("profile");
  expect(["timezone", "profile"].filter((name) => readdirSync(shared.refresh().etc).includes(name))).toEqual(
    [],
  );
  expect(readdirSync(open().refresh().etc)).not.toContain("older-release.conf");
});

test("a file that becomes a directory, and the other way round", () => {
  const shared = open();
  shared.refresh();
  rmSync(join(host, "profile"));
  mkdirSync(join(host, "profile"));
  rmSync(join(host, "ssl/certs"), { recursive: true });
  writeFileSync(join(host, "ssl/certs"), "flat");
  const view = shared.refresh();
  expect(view.dirs).toEqual(["profile"]);
  expect(lstatSync(inEtc("profile")).isDirectory()).toBe(true);
  expect(readFileSync(inEtc("ssl/certs"), "utf8")).toBe("flat");
});

test("two servers that begin at the same time do not get into each other's way", async () => {
  const script = `
    const { SharedFiles } = await import(${JSON.stringify(join(import.meta.dir, "shared-files.ts"))});
    const [dir, host, begin] = process.argv.slice(1);
    for (let i = 0; i < 40; i++) {
      const at = Number(begin) + i * 20;
      while (Date.now() < at);
      new SharedFiles({ shared: dir + i }, { hostEtc: host }).refresh();
    }`;
  for (let i = 0; i < 20; i++) mkdirSync(join(host, `python3.${i}`));
  mkdirSync(layout().shared);
  const shared = `${layout().shared}/`;
  const begin = String(Date.now() + 500);
  const servers = [1, 2].map(() =>
    Bun.spawn([process.execPath, "-e", script, shared, host, begin], { stdout: "ignore", stderr: "pipe" }),
  );
  const said = await Promise.all(servers.map(({ stderr }) => new Response(stderr).text()));
  expect(said).toEqual(["", ""]);
  for (let i = 0; i < 40; i++) expect(readdirSync(join(shared, String(i), "etc"))).toContain("hosts");
});

test("a sandbox with something of its own in /etc sees the rest all the same", async () => {
  const machine = await Machine.open();
  const look =
    "id -un; hostname; cat /etc/hostname /etc/own/x 2>/dev/null; readlink /etc/mtab; ls /etc/ssl/certs | wc -l; wc -c < /etc/profile";
  const seen = [];
  mkdirSync(join(machine.dir, "shared"));
  writeFileSync(join(machine.dir, "shared/x"), "own\n");
  const mounts = [{ source: join(machine.dir, "shared"), target: "/etc/own" }];
  for (const spec of [{}, { mounts }]) {
    const ref = await machine.launch({ network: "none", ...spec });
    seen.push((await machine.run(ref, "sh", "-c", look)).stdout.split("\n"));
  }
  const [plain, own] = seen;
  expect(plain?.slice(0, 3)).toEqual(["user", "box", "box"]);
  expect(own).toEqual([...(plain?.slice(0, 3) ?? []), "own", ...(plain?.slice(3) ?? [])]);
  await machine.close();
});
