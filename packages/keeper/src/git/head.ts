import type { CloneResult } from "@holdfast/protocol";
import type { Engine } from "../engine/engine.ts";
import { askGit, runGit } from "./run-git.ts";

/** What is checked out. */
export async function headOf(engine: Engine, cwd: string): Promise<Pick<CloneResult, "commit" | "branch">> {
  await askGit(engine, { cwd, args: ["rev-parse", "--git-dir"] });
  const [commit, branch] = await Promise.all([
    runGit(engine, { cwd, args: ["rev-parse", "--verify", "--quiet", "HEAD"] }),
    runGit(engine, { cwd, args: ["symbolic-ref", "--short", "--quiet", "HEAD"] }),
  ]);
  const told = ({ exitCode, stdout }: typeof commit) =>
    exitCode === 0 ? Buffer.from(stdout.trim(), "latin1").toString() : null;
  return { commit: told(commit), branch: told(branch) };
}
