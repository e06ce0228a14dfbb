import {
  chmodSync,
  closeSync,
  ftruncateSync,
  linkSync,
  lstatSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
  writeSync,
} from "node:fs";

const slash = Buffer.from("/");

/** Everything that a copy of a tree can get wrong, small. */
export function makeOddTree(top: string, { longNames = true } = {}): void {
  const at = (...parts: (string | Buffer)[]) =>
    Buffer.concat([top, ...parts].flatMap((part) => [Buffer.from(part), slash])).subarray(0, -1);
  mkdirSync(at("dir"), { recursive: true });
  mkdirSync(at("empty"));
  mkdirSync(at("closed"));
  const names = [
    "plain",
    "with space",
    "new\nline",
    "日本",
    "-dash",
    "*?'\"$x",
    Buffer.from([0x63, 0xe9, 0xff, 0x0a]),
  ];
  for (const [i, name] of names.entries())
    writeFileSync(at("dir", name), `content ${i}\0\xff`.repeat(i * 300));
  if (longNames) {
    const long = Array.from({ length: 10 }, (_, i) => `${i}-${"x".repeat(200)}`);
    mkdirSync(at(...long), { recursive: true });
    writeFileSync(at(...long, "deep"), "deep");
    symlinkSync(long.join("/"), at("long-link"));
  }
  writeFileSync(at("dir", "block"), "b".repeat(512)); // exactly a block: no padding
  writeFileSync(at("closed", "f"), "in a directory that cannot be written to");
  symlinkSync("dir/plain", at("link"));
  symlinkSync("/nowhere/at all", at("dangling"));
  linkSync(at("dir", "block"), at("empty-not"));
  makeHoles(at("holes"));
  for (const [i, mode] of [0o600, 0o444, 0o755, 0o4711].entries()) {
    writeFileSync(at(`mode-${i}`), "m");
    chmodSync(at(`mode-${i}`), mode);
  }
  utimesSync(at("dir", "plain"), 1_000_000_000, 1_000_000_000);
  utimesSync(at("empty"), 1_234_567_890, 1_234_567_890);
  chmodSync(at("closed"), 0o555);
}

/** 16 MiB, nearly all of it holes; data at its beginning, in its middle in many places, and none at its end. */
function makeHoles(path: Buffer): void {
  const fd = openSync(path, "w");
  for (let i = 0; i < 40; i++) writeSync(fd, `data ${i}`, i * 256 * 1024 + (i === 0 ? 0 : 100));
  ftruncateSync(fd, 16 * 1024 * 1024);
  closeSync(fd);
}

/** Every name below with all that should be equal in a copy. */
export function describeTree(top: string): Map<string, string> {
  const found = new Map<string, string>();
  const firstOf = new Map<number, string>();
  const walk = (dir: Buffer, prefix: string): void => {
    for (const name of readdirSync(dir, { encoding: "buffer" }).sort(Buffer.compare)) {
      const path = Buffer.concat([dir, slash, name]);
      const key = prefix + name.toString("latin1");
      const stat = lstatSync(path);
      const mode = (stat.mode & 0o7777).toString(8);
      if (stat.isSymbolicLink())
        found.set(key, `link to ${readlinkSync(path, { encoding: "buffer" }).toString("latin1")}`);
      else if (stat.isDirectory()) {
        found.set(key, `directory ${mode} ${Math.floor(stat.mtimeMs / 1000)}`);
        walk(path, `${key}/`);
      } else {
        const first = firstOf.get(stat.ino) ?? key;
        firstOf.set(stat.ino, first);
        const hash = Bun.hash(readFileSync(path)).toString(36);
        found.set(key, `file ${mode} ${stat.size} ${hash} ${Math.floor(stat.mtimeMs / 1000)} ${first}`);
      }
    }
  };
  walk(Buffer.from(top), "");
  return found;
}
