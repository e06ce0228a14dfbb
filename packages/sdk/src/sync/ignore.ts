/**
 * What not to sync, by the rules of .gitignore files: those of a directory count below it, a later line wins over an
 * earlier one, a deeper file over one above it, `!` takes back, and nothing below an ignored directory can be taken back.
 */
export class IgnoreRules {
  readonly #rules: Rule[] = [];

  /** Adds the lines of one file; `dir` is its directory, relative to the top ("" for the top). */
  add(dir: string, text: string): this {
    for (const line of text.split(/\r?\n/)) {
      const rule = ruleOf(dir, line);
      if (rule !== undefined) this.#rules.push(rule);
    }
    this.#rules.sort((one, other) => one.dir.length - other.dir.length); // stable: of one file, the order of its lines
    return this;
  }

  /** Of the entry itself: whether its directories are ignored is the caller's to know, on its way down to it. */
  ignores(path: string, { isDirectory }: { isDirectory: boolean }): boolean {
    for (let at = this.#rules.length - 1; at >= 0; at--) {
      const rule = this.#rules[at] as Rule;
      if (rule.onlyDirectories && !isDirectory) continue;
      if (rule.dir !== "" && !path.startsWith(`${rule.dir}/`)) continue;
      const below = rule.dir === "" ? path : path.slice(rule.dir.length + 1);
      if (rule.pattern.test(below)) return !rule.isNegative;
    }
    return false;
  }

  /** Of a file by its whole path, with all the directories that it is in. */
  ignoresFile(path: string): boolean {
    const end = path.lastIndexOf("/");
    if (end !== -1 && this.ignoresDirectory(path.slice(0, end))) return true;
    return this.ignores(path, { isDirectory: false });
  }

  /** Of a directory by its whole path, with all those that it is in. */
  ignoresDirectory(path: string): boolean {
    const parts = path.split("/");
    return parts.some((_, i) => this.ignores(parts.slice(0, i + 1).join("/"), { isDirectory: true }));
  }
}

interface Rule {
  readonly dir: string;
  readonly pattern: RegExp;
  readonly isNegative: boolean;
  readonly onlyDirectories: boolean;
}

function ruleOf(dir: string, line: string): Rule | undefined {
  // Blanks at the end do not count, unless the last is escaped.
  let text = line.replace(/(?<!\\)[ \t]+$/, "");
  if (text === "" || text.startsWith("#")) return undefined;
  const isNegative = text.startsWith("!");
  if (isNegative) text = text.slice(1);
  const onlyDirectories = text.endsWith("/");
  if (onlyDirectories) text = text.slice(0, -1);
  // A slash at the beginning or in the middle ties it to its directory; without one it holds at any depth.
  const isTied = text.includes("/");
  if (text.startsWith("/")) text = text.slice(1);
  if (text === "") return undefined;
  const source = isTied ? patternOf(text) : `(?:.*/)?${patternOf(text)}`;
  return { dir, pattern: new RegExp(`^${source}$`, "s"), isNegative, onlyDirectories };
}

function patternOf(glob: string): string {
  let source = "";
  for (let at = 0; at < glob.length; ) {
    const rest = glob.slice(at);
    const [taken, pattern] = pieceOf(rest, { isAtStart: at === 0 || glob[at - 1] === "/" });
    source += pattern;
    at += taken;
  }
  return source;
}

/** The next piece of a glob: how long it is, and what it means. */
function pieceOf(rest: string, { isAtStart }: { isAtStart: boolean }): [taken: number, pattern: string] {
  if (isAtStart && rest.startsWith("**/")) return [3, "(?:.*/)?"];
  if (isAtStart && rest === "**") return [2, ".*"];
  const stars = /^\*+/.exec(rest)?.[0].length ?? 0;
  if (stars > 0) return [stars, "[^/]*"];
  if (rest.startsWith("?")) return [1, "[^/]"];
  const set = /^\[([!^]?)(\]?[^\]]*)\]/.exec(rest);
  if (set !== null) {
    const inside = (set[2] ?? "").replace(/[\\[\]]/g, "\\$&").replace(/^\^/, "\\^");
    return [set[0].length, `(?!/)[${set[1] ? "^" : ""}${inside}]`];
  }
  const isEscape = rest.startsWith("\\") && rest.length > 1;
  const character = rest.charAt(isEscape ? 1 : 0);
  return [isEscape ? 2 : 1, character.replace(/[.*+?^${}()|[\]\\/]/g, "\\$&")];
}
