import { readFileSync } from "node:fs";
import { join } from "node:path";
import * as sdk from "holdfast";
import { root } from "./harness.ts";

export interface Example {
  /** File and line. */
  readonly at: string;
  readonly code: string;
  /** `no-run`: it needs what is not here (Docker, a model), or takes the token from the others. Its types are checked. */
  readonly runs: boolean;
}

const SOURCES = [
  ...[...new Bun.Glob("packages/sdk/src/**/*.ts").scanSync(root)].filter(
    (file) => !/\.test\.ts$|\/testing\//.test(file),
  ),
  "packages/protocol/src/errors.ts",
  "packages/protocol/src/screen-modes.ts",
].sort();

/** Every fenced example in the comments of what is published, and in the document about it. */
export function examples(): Example[] {
  const inComments = SOURCES.flatMap((file) => fenced(file, / *\* ```ts( no-run)?\n([\s\S]*?)\n *\* ```/g));
  return [...inComments, ...fenced("docs/sdk.md", /^```ts( no-run)?\n([\s\S]*?)\n```/gm)];
}

function fenced(file: string, fence: RegExp): Example[] {
  const text = readFileSync(join(root, file), "utf8");
  return [...text.matchAll(fence)].map((match) => ({
    at: `${file}:${text.slice(0, match.index).split("\n").length}`,
    code: (match[2] ?? "")
      .replace(/^ *\* ?/gm, "")
      .replace(/^import .* from "holdfast";\n/gm, "")
      .replace(/^import (\{.*\}) from (".*");$/gm, "const $1 = await import($2);"),
    runs: match[1] === undefined,
  }));
}

/** What is published and can be called, but has no example in its comment; and what has no comment at all. */
export function undocumented(): string[] {
  const index = readFileSync(join(root, "packages/sdk/src/index.ts"), "utf8");
  const exported = new Set(index.replace(/"[^"]*"/g, "").match(/\b\w+\b/g));
  return SOURCES.flatMap((file) => {
    const lines = readFileSync(join(root, file), "utf8").split("\n");
    const isEntry = /adapters\/(?!toolbox)/.test(file);
    const isExported = (name: string) => isEntry || exported.has(name);
    let owner: string | undefined;
    return lines.flatMap((line, number) => {
      const [, kind, name = ""] =
        /^export (?:async )?(class|function|interface|type)\*? (\w+)/.exec(line) ?? [];
      if (kind !== undefined) owner = kind === "class" && isExported(name) ? name : undefined;
      const member = owner && /^ {2}(?:static )?(?:async )?\*?(get )?([a-z]\w*)(?:<.*>)?\(/.exec(line);
      const isPublic = kind !== undefined ? isExported(name) : !!member && member[2] !== "constructor";
      if (!isPublic) return [];
      const comment = commentAbove(lines, number);
      const needsExample = kind === "class" || kind === "function" || (!!member && member[1] === undefined);
      if (comment.includes("@internal")) return [];
      const enough = needsExample ? comment.includes("@example") : comment !== "";
      return enough ? [] : [`${file}:${number + 1} ${line.trim()}`];
    });
  });
}

/** Overloads stand between a comment and the rest. */
function commentAbove(lines: readonly string[], number: number): string {
  let end = number - 1;
  while (/^ {2}\w+\(.*;$/.test(lines[end] ?? "")) end--;
  if (!lines[end]?.trim().endsWith("*/")) return "";
  let begin = end;
  while (!lines[begin]?.includes("/**")) begin--;
  return lines.slice(begin, end + 1).join("\n");
}

/** One module with a function for each, all of them among the same things: a sandbox, its processes, and so on. */
export function asModule(all: readonly Example[]): string {
  const bodies = all.map(
    ({ at, code }) => `  ${JSON.stringify(at)}: async (_: Things) => {\n${shadowed(code)}\n  },`,
  );
  return [
    `import { ${Object.keys(sdk).join(", ")} } from "holdfast";`,
    `void [${Object.keys(sdk).join(", ")}];`,
    'import type { LanguageModel } from "ai";',
    THINGS,
    "export const run: Record<string, (things: Things) => Promise<void>> = {",
    ...bodies,
    "};",
  ].join("\n");
}

const THINGS = `export interface Things {
  sbx: Sandbox; server: Process; build: Process; repl: Process; shell: Session; term: Terminal; turn: Turn; claim: Claim;
  model: LanguageModel; snapshot: Snapshot; operator: Operator; client: Client; signal: AbortSignal; blob: Blob;
  destination: WritableStream<Uint8Array>; screen: { write(bytes: Uint8Array): void; resize(cols: number, rows: number): void };
}`;

const NAMES = [...THINGS.replace(/\{ write.*\}/, "Screen").matchAll(/\b(\w+): [A-Z]/g)].map(
  (match) => match[1] ?? "",
);

/** An example may make its own; what it only uses is given to it. */
function shadowed(code: string): string {
  const used = NAMES.filter((name) => new RegExp(`\\b${name}\\b`).test(code));
  return `const { ${used.join(", ")} } = _;\n{\n${code}\n}`;
}
