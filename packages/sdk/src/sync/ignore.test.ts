import { afterAll, expect, test } from "bun:test";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { IgnoreRules } from "./ignore.ts";

const dir = mkdtempSync(join(tmpdir(), "holdfast-ignore-"));
afterAll(() => rmSync(dir, { recursive: true }));

const files: Record<string, string> = {
  "": [
    ...[
      "# a comment",
      "",
      "*.log",
      "!keep.log",
      "/top",
      "build/",
      "doc/*.txt",
      "**/deep",
      "a/**/z",
      "logs/**",
    ],
    ...["\\#hash", "\\!bang", "trailing\\ ", "blank   ", "x[0-9]y", "n[!a-c]n", "q?q", "foo/*", "!foo/kept"],
    ...[
      "**/any/where",
      "ends/**",
      "node_modules",
      "!node_modules/in",
      "s*r",
      "[]]b",
      "dots...",
      "a.c",
      "(p)",
    ],
  ].join("\n"),
  sub: ["!*.log", "local", "/tied", "nested/"].join("\r\n"),
  "sub/deeper": ["*", "!only"].join("\n"),
};

const paths = [
  ...["a.log", "keep.log", "sub/b.log", "sub/keep.log", "top", "sub/top", "build/x", "sub/build/y", "build"],
  ...["doc/a.txt", "doc/in/a.txt", "deep", "x/deep", "x/y/deep/z", "a/z", "a/b/z", "a/b/c/z", "logs/a/b"],
  ...["#hash", "!bang", "trailing ", "blank", "x5y", "xay", "ndn", "nan", "qxq", "q/q", "foo/a", "foo/kept"],
  ...["any/where", "1/2/any/where", "ends/a", "node_modules/in", "node_modules/in/x", "w/node_modules/a"],
  ...[
    "sub/local",
    "sub/x/local",
    "sub/tied",
    "sub/x/tied",
    "sub/nested/a",
    "sub/x/nested/b",
    "local",
    "tied",
  ],
  ...["sub/deeper/a", "sub/deeper/only", "sub/deeper/x/only", "sr", "str", "s/r", "]b", "dots...", "dotsabc"],
  ...["a.c", "abc", "(p)", "p", "plain", "with\nline.log", "with\nline", "é.log", "sub/deeper/b.log"],
];

test("the same files are ignored as git ignores", () => {
  const rules = new IgnoreRules();
  for (const [at, text] of Object.entries(files)) {
    mkdirSync(join(dir, at), { recursive: true });
    writeFileSync(join(dir, at, ".gitignore"), text);
    rules.add(at, text);
  }
  Bun.spawnSync(["git", "init", "--quiet", dir]);
  const asked = Bun.spawnSync(["git", "-C", dir, "check-ignore", "--no-index", "--stdin", "-z"], {
    stdin: Buffer.from(paths.join("\0")),
  });
  const byGit = asked.stdout
    .toString()
    .split("\0")
    .filter((path) => path !== "");
  expect(byGit.length).toBeGreaterThan(30);
  expect(paths.filter((path) => rules.ignoresFile(path))).toEqual(byGit);
});
