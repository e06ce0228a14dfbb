import type { DiffQuery, GitDiff } from "@holdfast/protocol";
import { byteName } from "../byte-name.ts";
import type { Engine } from "../engine/engine.ts";
import { changeOf } from "./changes.ts";
import { askGit } from "./run-git.ts";

type File = GitDiff["files"][number];

/** What has changed. Untracked files are not part of a diff; `status` has them. */
export async function gitDiff(engine: Engine, query: DiffQuery): Promise<GitDiff> {
  const { path, staged, base, maxPatchBytes } = query;
  const what = [...(staged === "true" ? ["--cached"] : []), ...(base === undefined ? [] : [base]), "--"];
  const args = ["diff", "--no-color", "--no-ext-diff", "--no-textconv", "-M", "-z", "--raw", "--numstat"];
  const { stdout: facts } = await askGit(engine, { cwd: path, args: [...args, ...what] });
  const files = parseFacts(facts);
  if (files.length === 0 || maxPatchBytes === 0) return { files, truncated: files.length > 0 };
  const options = ["diff", "--no-color", "--no-ext-diff", "--no-textconv", "-M", "--patch"];
  const patches = await askGit(engine, {
    cwd: path,
    args: [...options, ...what],
    maxBytes: maxPatchBytes,
    orPart: true,
  });
  return {
    files: withPatches(files, splitPatches(patches.stdout, { cut: patches.cut })),
    truncated: patches.cut,
  };
}

/** `git diff -z --raw --numstat`: all raw records, then all counts, in the same order. */
function parseFacts(output: string): File[] {
  const records = output.split("\0");
  const files: File[] = [];
  let at = 0;
  for (; records[at]?.startsWith(":"); ) {
    const letter = records[at]?.split(" ")[4]?.charAt(0) ?? "";
    const hasTwoNames = letter === "R" || letter === "C";
    const [first = "", second = ""] = records.slice(at + 1);
    files.push({
      ...byteName("path", hasTwoNames ? second : first),
      ...(hasTwoNames && byteName("from", first)),
      change: changeOf(letter),
      ...{ additions: null, deletions: null, binary: false },
    });
    at += hasTwoNames ? 3 : 2;
  }
  for (const file of files) {
    const [additions = "-", deletions = "-", name] = records[at]?.split("\t") ?? [];
    const binary = additions === "-";
    Object.assign(file, binary ? { binary } : { additions: Number(additions), deletions: Number(deletions) });
    at += name === "" ? 3 : 1; // of a rename both names follow
  }
  return files.filter((file, index) => !isTwin(file, files[index - 1]));
}

/** A file with a conflict is told twice, once as `unmerged` and once with its counts; both are put into the first. */
function isTwin(file: File, before: File | undefined): boolean {
  if (before?.path !== file.path || (file.change !== "unmerged" && before.change !== "unmerged"))
    return false;
  const { additions, deletions, binary } = file.change === "unmerged" ? before : file;
  Object.assign(before, { change: "unmerged", additions, deletions, binary });
  return true;
}

/** A line of a file's content always begins with a sign or a space, so these begin a file. */
const BEGINNING = /^(?:diff --(?:git|cc|combined) |\* Unmerged path )/m;

function splitPatches(output: string, { cut }: { cut: boolean }): string[] {
  const patches: string[] = [];
  let rest = output;
  while (rest.length > 0) {
    const next = rest.slice(1).search(BEGINNING);
    patches.push(next < 0 ? rest : rest.slice(0, next + 1));
    rest = next < 0 ? "" : rest.slice(next + 1);
  }
  return cut ? patches.slice(0, -1) : patches; // the last one is not whole
}

function withPatches(files: readonly File[], patches: readonly string[]): File[] {
  const left = [...patches];
  return files.map((file) => {
    const own = left.splice(0, patchesOf(file, left));
    const text = own.filter((patch) => !isUnmerged(patch)).join("");
    return file.binary || text === "" ? file : { ...file, patch: Buffer.from(text, "latin1").toString() };
  });
}

/** Another type is told as the end of one file and the beginning of another; a conflict with or without a patch. */
function patchesOf({ change }: File, [first, second]: readonly string[]): number {
  if (change === "typechanged") return 2;
  return change === "unmerged" && !isUnmerged(first) && isUnmerged(second) ? 2 : 1;
}

function isUnmerged(patch: string | undefined): boolean {
  return patch?.startsWith("* Unmerged") === true;
}
