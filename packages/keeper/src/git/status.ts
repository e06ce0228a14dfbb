import type { GitChange, GitStatus } from "@holdfast/protocol";
import { byteName } from "../byte-name.ts";
import type { Engine } from "../engine/engine.ts";
import { changeOf } from "./changes.ts";
import { askGit } from "./run-git.ts";

export async function gitStatus(engine: Engine, { path }: { path: string }): Promise<GitStatus> {
  const args = ["status", "--porcelain=v2", "--branch", "-z", "--untracked-files=all"];
  return parseStatus((await askGit(engine, { cwd: path, args })).stdout);
}

/** `git status --porcelain=v2 --branch -z`, in which every name is its own bytes and nothing is quoted. */
function parseStatus(output: string): GitStatus {
  const records = output.split("\0");
  const headers = new Map<string, string>();
  const files: GitStatus["files"] = [];
  for (let at = 0; at < records.length; at++) {
    const record = records[at] ?? "";
    const header = /^# branch\.(\w+) (.*)$/s.exec(record);
    if (header !== null) headers.set(header[1] ?? "", header[2] ?? "");
    else if (record.startsWith("2 "))
      files.push(fileOf(record, records[++at])); // a rename's old name follows
    else if (/^[1u?] /.test(record)) files.push(fileOf(record));
  }
  return { ...branchOf(headers), clean: files.length === 0, files };
}

// How many words stand before the name.
const wordsBefore = { "1": 8, "2": 9, u: 10, "?": 1 } as const;

function fileOf(record: string, from?: string): GitStatus["files"][number] {
  const kind = record.charAt(0) as keyof typeof wordsBefore;
  const [, [index = ".", worktree = "."] = []] = record.split(" ");
  const name = byteName("path", afterWords(record, wordsBefore[kind]));
  if (kind === "?") return { ...name, index: "unmodified", worktree: "untracked", conflicted: false };
  const change = (letter: string): GitChange => (kind === "u" ? "unmerged" : changeOf(letter));
  return {
    ...name,
    ...(from !== undefined && byteName("from", from)),
    index: change(index),
    worktree: change(worktree),
    conflicted: kind === "u",
  };
}

function afterWords(record: string, count: number): string {
  let at = 0;
  for (let i = 0; i < count; i++) at = record.indexOf(" ", at) + 1;
  return record.slice(at);
}

function branchOf(headers: Map<string, string>): Omit<GitStatus, "clean" | "files"> {
  const text = (name: string) => {
    const value = headers.get(name);
    return value === undefined ? undefined : Buffer.from(value, "latin1").toString();
  };
  const [head, commit, upstream] = [text("head"), text("oid"), text("upstream")];
  const counts = /^\+(\d+) -(\d+)$/.exec(text("ab") ?? "");
  return {
    branch: head === undefined || head === "(detached)" ? null : head,
    commit: commit === undefined || commit === "(initial)" ? null : commit,
    ...(upstream !== undefined && { upstream }),
    ...(counts !== null && { ahead: Number(counts[1]), behind: Number(counts[2]) }),
  };
}
