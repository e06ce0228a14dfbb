import { type Command, Help, type Option } from "commander";

/** What is there where nobody says how wide the terminal is. */
const USUAL_WIDTH = 80;
const LEAST_WIDTH = 16;
const EXAMPLE = /^ {2}(\S.*?)(?: {2,}(\S.*))?$/;

/** Prints the examples and notes below a command's help as wide as the terminal, like the rest of it. */
export function fitHelp(program: Command): Command {
  // On a narrow terminal, too, what an option does is wrapped beside it.
  const printing = (stream: NodeJS.WriteStream) => (text: string) => {
    stream.write(hasExamples(text) ? fitted(text, stream.columns || USUAL_WIDTH) : text);
  };
  return program.configureHelp({ minWidthToWrap: LEAST_WIDTH, groupItems: commonLast }).configureOutput({
    writeOut: printing(process.stdout),
    // Whoever names no command gets the help there.
    writeErr: printing(process.stderr),
  });
}

export const COMMON_OPTIONS = "Common options:";

/** What many commands have is shown after what one has. */
function commonLast<T extends Command | Option>(
  this: Help,
  unsorted: T[],
  visible: T[],
  groupOf: (item: T) => string,
): Map<string, T[]> {
  const inOrder = Help.prototype.groupItems<T>;
  const groups = inOrder.call(this, unsorted, visible, groupOf) as Map<string, T[]>;
  const common = groups.get(COMMON_OPTIONS);
  groups.delete(COMMON_OPTIONS);
  return common === undefined ? groups : groups.set(COMMON_OPTIONS, common);
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
  const blocks = text.trim().split(/\n{2,}/);
  const shown = blocks.map((block) =>
    block.startsWith("Examples:\n") ? fittedExamples(block, width) : wrapped(block, width),
  );
  return `\n${shown.join("\n\n")}\n`;
}

function fittedExamples(block: string, width: number): string {
  const [title, ...lines] = block.split("\n");
  const pairs = lines.map((line) => EXAMPLE.exec(line) ?? [line, line.trim()]);
  const fitting = pairs.filter(
    ([, line = "", what = ""]) => what !== "" && line.length + what.length + 4 <= width,
  );
  const column = Math.max(0, ...fitting.map(([, line = ""]) => line.length));
  const shown = pairs.map(([, line = "", what]) => {
    if (what === undefined) return `  ${line}`;
    const beside = `  ${line.padEnd(column)}  ${what}`;
    if (beside.length <= width) return beside;
    return `  ${line}\n${wrapped(what, width - 6).replaceAll(/^/gm, "      ")}`;
  });
  return [title, ...shown].join("\n");
}

/** Words are never broken: an id or an address can be copied whole. */
export function wrapped(paragraph: string, width: number): string {
  const lines = [""];
  for (const word of paragraph.trim().split(/\s+/)) {
    const line = lines.at(-1) ?? "";
    if (line === "") lines[lines.length - 1] = word;
    else if (line.length + 1 + word.length <= width) lines[lines.length - 1] = `${line} ${word}`;
    else lines.push(word);
  }
  return lines.join("\n");
}
