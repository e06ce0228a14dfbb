import type { Command } from "commander";

/** What is there where nobody says how wide the terminal is. */
const USUAL_WIDTH = 80;
const EXAMPLE = /^ {2}(\S.*?)(?: {2,}(\S.*))?$/;

/** Prints the examples and notes below a command's help as wide as the terminal, like the rest of it. */
export function fitHelp(program: Command): Command {
  return program.configureOutput({
    writeOut: (text) => {
      process.stdout.write(hasExamples(text) ? fitted(text, process.stdout.columns || USUAL_WIDTH) : text);
    },
  });
}

/** The command lines among a help text's examples. */
export function examplesIn(help: string): string[] {
  const [, block = ""] = /^Examples:\n((?: {2}.*\n?)+)/m.exec(help) ?? [];
  return block.split("\n").flatMap((line) => EXAMPLE.exec(line)?.[1] ?? []);
}

function hasExamples(text: string): boolean {
  return text.includes("\nExamples:\n");
}

/** Paragraphs are wrapped; what an example does stands beside it, or below where both do not fit. */
export function fitted(text: string, width: number): string {
  return text
    .split(/\n{2,}/)
    .map((block) =>
      hasExamples(`\n${block.trim()}\n`) ? fittedExamples(block, width) : wrapped(block, width),
    )
    .join("\n\n");
}

function fittedExamples(block: string, width: number): string {
  const [title = "", ...lines] = block.split("\n").filter((line) => line !== "");
  const pairs = lines.map((line) => EXAMPLE.exec(line) ?? [line, line.trim()]);
  const fitting = pairs.filter(
    ([, line = "", what = ""]) => what !== "" && line.length + what.length + 4 <= width,
  );
  const column = Math.max(0, ...fitting.map(([, line = ""]) => line.length));
  const shown = pairs.map(([, line = "", what]) => {
    if (what === undefined) return `  ${line}`;
    const beside = `  ${line.padEnd(column)}  ${what}`;
    return beside.length <= width
      ? beside
      : `  ${line}\n${wrapped(what, width - 6).replaceAll(/^/gm, "      ")}`;
  });
  const before = block.startsWith("\n") ? "\n" : "";
  return `${before}${title}\n${shown.join("\n")}${block.endsWith("\n") ? "\n" : ""}`;
}

function wrapped(paragraph: string, width: number): string {
  const lines = [""];
  for (const word of paragraph.split(/\s+/)) {
    const line = lines.at(-1) ?? "";
    if (line === "") lines[lines.length - 1] = word;
    else if (line.length + 1 + word.length <= width) lines[lines.length - 1] = `${line} ${word}`;
    else lines.push(word);
  }
  return lines.join("\n");
}
