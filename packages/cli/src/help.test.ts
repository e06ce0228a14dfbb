import { expect, test } from "bun:test";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { examplesIn, fitted } from "./help.ts";
import { buildProgram } from "./program.ts";
import { verbs } from "./verbs.ts";

const text = `
Examples:
  holdfast ls                 all of them
  holdfast ls --state running

A note that is
long enough to be wrapped.`;

test("what an example does stands beside it, or below it where the terminal is narrow", () => {
  expect(fitted(text, 60)).toBe(
    "\nExamples:\n  holdfast ls  all of them\n  holdfast ls --state running\n\nA note that is long enough to be wrapped.\n",
  );
  expect(fitted(text, 24)).toBe(
    "\nExamples:\n  holdfast ls\n      all of them\n  holdfast ls --state running\n\nA note that is long\nenough to be wrapped.\n",
  );
  expect(examplesIn(text)).toEqual(["holdfast ls", "holdfast ls --state running"]);
});

const names = (await buildProgram([])).commands
  .map((command) => command.name())
  .filter((name) => /^[a-z]/.test(name));
const ofTheServer = ["serve", "doctor"]; // their own programs: packages/server has the same test

test.each(names.filter((name) => !ofTheServer.includes(name)))(
  "%s --help: its purpose, its options, and examples that are understood",
  async (name) => {
    const help = await helpOf(name);
    expect(help).toStartWith(`Usage: holdfast ${name} `);
    expect(help).toContain("Options:\n");
    const examples = examplesIn(help);
    expect(examples.length).toBeGreaterThanOrEqual(2);
    for (const example of examples) await understood(example);
  },
);

test("the examples of holdfast --help are understood", async () => {
  for (const example of examplesIn(await helpOf())) await understood(example);
});

test("docs/cli.md lists every command, in its group; HOLDFAST_WRITE_DOCS=1 writes it", async () => {
  const file = join(import.meta.dir, "../../../docs/cli.md");
  const before = readFileSync(file, "utf8");
  const after = before.replace(/(<!-- commands -->\n)[\s\S]*(<!-- end -->)/, `$1${tableOfVerbs()}$2`);
  if (process.env.HOLDFAST_WRITE_DOCS === "1") writeFileSync(file, after);
  expect(before).toBe(after);
});

function tableOfVerbs(): string {
  const rows = Object.entries(verbs).flatMap(([group, members]) =>
    Object.entries(members)
      .filter(([, { isHidden }]) => !isHidden)
      .map(([name, { summary }], at) => `| ${at === 0 ? group : ""} | ` + `\`${name}\` | ${summary} |`),
  );
  return ["| | command | |", "|---|---|---|", ...rows, ""].join("\n");
}

async function helpOf(...names: string[]): Promise<string> {
  const program = await buildProgram([...names, "--help"]);
  let help = "";
  const command = program.commands.find((one) => one.name() === names[0]) ?? program;
  command.configureOutput({ writeOut: (text) => (help += text) }).outputHelp();
  return help;
}

/** Every call of ours in a line for a shell is parsed, and nothing is done. */
async function understood(line: string): Promise<void> {
  const calls = wordsOf(line);
  expect(calls).not.toEqual([]);
  for (const words of calls) {
    if (ofTheServer.includes(words[0] ?? "")) continue;
    const program = await buildProgram(words);
    for (const command of program.commands) command.action(() => {});
    await program.parseAsync(words, { from: "user" }).catch((error: Error) => {
      throw new Error(`${line}: ${error.message}`);
    });
  }
}

/** The arguments of each `holdfast` that a shell would start for this line: bash itself splits them. */
function wordsOf(line: string): string[][] {
  const script = `holdfast() { printf '%s\\0' "$@" $'\\1' >&3; echo x; }
    for name in ssh gzip gunzip tar cat; do eval "$name() { :; }"; done
    ssh() { shift; "$@"; }; cd /; exec 3>&1 >/dev/null 2>/dev/null </dev/null; ${line.replace(/[<>] +\S+/g, "")}`;
  const said = Bun.spawnSync(["bash", "-c", script]).stdout.toString();
  return said
    .split("\u0001\0")
    .slice(0, -1)
    .map((call) => call.split("\0").slice(0, -1));
}
