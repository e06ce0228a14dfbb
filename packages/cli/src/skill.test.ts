import { expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { buildProgram } from "./program.ts";
import { setUpCli } from "./test-cli.ts";

const { home, holdfast } = setUpCli();

test("skill prints what install writes, where an agent looks for it", async () => {
  const { stdout: text } = await holdfast(["skill"]);
  const [, name, description] = text.match(/^---\nname: (.+)\ndescription: (.+)\n---\n/) ?? [];
  expect(name).toBe("holdfast");
  expect(description?.length).toBeLessThan(1024);
  for (const [args, path] of [
    [[], ".claude/skills/holdfast/SKILL.md"],
    [["--dir", "here"], "here/holdfast/SKILL.md"],
  ] as const) {
    const { stdout, code } = await holdfast(["skill", "install", ...args]);
    expect([code, stdout.trim().endsWith(path)]).toEqual([0, true]);
    expect(readFileSync(join(home, path), "utf8")).toBe(text);
  }
});

test("every command that the skill teaches exists", async () => {
  const program = await buildProgram([]);
  const known = program.commands.map((command) => command.name());
  const text = readFileSync(join(import.meta.dir, "skill/holdfast/SKILL.md"), "utf8");
  const taught = [...text.matchAll(/holdfast ([a-z]+)/g)].map((match) => match[1] ?? "");
  expect(taught.length).toBeGreaterThan(10);
  expect(taught.filter((name) => !known.includes(name) && name !== "sandbox")).toEqual([]);
});
