import { mkdir, writeFile } from "node:fs/promises";
import { homedir } from "node:os";
import { join } from "node:path";
import { Argument, type Command } from "commander";
import { addOutputOption, outputOf } from "../context.ts";
import { print, printJson } from "../print.ts";
import text from "../skill/holdfast/SKILL.md" with { type: "text" };

export function define(command: Command): void {
  addOutputOption(command)
    .addArgument(
      new Argument("[action]", "write it where an agent finds it; without this, it is printed").choices([
        "install",
      ]),
    )
    .option("--dir <dir>", "the agent's directory for skills", join(homedir(), ".claude", "skills"))
    .addHelpText("after", EXAMPLES)
    .action(skill);
}

async function skill(
  action: "install" | undefined,
  { dir }: { dir: string },
  command: Command,
): Promise<void> {
  if (action === undefined) return print(text);
  const path = join(dir, "holdfast", "SKILL.md");
  await mkdir(join(dir, "holdfast"), { recursive: true });
  await writeFile(path, text);
  await (outputOf(command.parent ?? command) === "json" ? printJson({ path }) : print(`${path}\n`));
}

const EXAMPLES = `
Examples:
  holdfast skill                                   print it
  holdfast skill install                           for Claude Code, in all projects
  holdfast skill install --dir .claude/skills      in this project only

Installed again, it is replaced by this version's.`;
