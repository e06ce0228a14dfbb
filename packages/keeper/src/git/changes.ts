import type { GitChange } from "@holdfast/protocol";

const byLetter: Record<string, GitChange> = {
  M: "modified",
  T: "typechanged",
  A: "added",
  D: "deleted",
  R: "renamed",
  C: "copied",
  U: "unmerged",
};

/** git's letter for what was done to a file; `.` for nothing. */
export function changeOf(letter: string): GitChange {
  return byLetter[letter] ?? "unmodified";
}
