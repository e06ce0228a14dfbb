import { Argument, type Command } from "commander";
import { type CloneProgress, type GitDiff, type GitStatus, HoldfastError, type Sandbox } from "holdfast";
import { addGlobalOptions, type Context, contextOf } from "../context.ts";
import { UsageError } from "../failure.ts";
import { findSandbox } from "../find-sandbox.ts";
import { listenForSignals, unlessInterrupted } from "../interruption.ts";
import { print, printJson } from "../print.ts";
import { oneLine } from "../style.ts";
import { parseCount, parseDurationMs } from "../units.ts";

export function define(command: Command): void {
  addGlobalOptions(command)
    .addArgument(new Argument("<action>").choices(["clone", "status", "diff"]))
    .argument("<sandbox>", "its name, its id, or the beginning of its id")
    .argument("<arguments...>", "clone: URL PATH; status and diff: PATH")
    .option("--branch <name>", "clone: a branch or tag")
    .option("--depth <n>", "clone: only so many commits of history", parseCount)
    .option(
      "--sparse <dir>",
      "clone: only this directory, beside the files at the top (again for more)",
      collect,
    )
    .option("--submodules", "clone: with its submodules")
    .option("--timeout <time>", "clone: give up after this time, such as 5m", parseDurationMs)
    .option("--token-env <NAME>", "clone: the variable of ours that holds a password or token")
    .option("--username <name>", "clone: who the token belongs to (default: x-access-token)")
    .option("--staged", "diff: what is staged")
    .option("--base <commit>", "diff: compare with this commit, branch or tag")
    .addHelpText("after", EXAMPLES)
    .action(git);
}

interface Options {
  branch?: string;
  depth?: number;
  sparse?: string[];
  submodules?: true;
  timeout?: number;
  tokenEnv?: string;
  username?: string;
  staged?: true;
  base?: string;
}

type Action = "clone" | "status" | "diff";

async function git(
  action: Action,
  meant: string,
  args: string[],
  options: Options,
  command: Command,
): Promise<void> {
  const [first = "", second] = args;
  if (args.length !== (action === "clone" ? 2 : 1))
    throw new UsageError(
      `git ${action} takes ${action === "clone" ? "a URL and a path" : "one path"} after the sandbox`,
      `Say: holdfast git ${action} SANDBOX ${action === "clone" ? "URL PATH" : "PATH"}`,
    );
  const { client, output } = await contextOf(command);
  const sandbox = await findSandbox(client, meant);
  if (action === "clone") return clone(sandbox, { url: first, path: second ?? "", options, output });
  if (action === "status") return show(await sandbox.git.status(first), { output, asText: statusText });
  const { staged, base } = options;
  return show(await sandbox.git.diff(first, { staged, base }), { output, asText: diffText });
}

async function clone(
  sandbox: Sandbox,
  { url, path, options, output }: { url: string; path: string; options: Options; output: Context["output"] },
): Promise<void> {
  const { branch, depth, sparse, submodules, timeout: timeoutMs } = options;
  const interruption = listenForSignals();
  process.exitCode = await unlessInterrupted(interruption, async () => {
    const cloned = await sandbox.git.clone(url, path, {
      ...{ branch, depth, sparse, submodules, timeoutMs },
      credentials: credentialsOf(options),
      onProgress: process.stderr.isTTY ? showProgress : undefined,
      signal: interruption.signal,
    });
    if (process.stderr.isTTY) process.stderr.write("\r\u001b[K");
    const at = `${cloned.branch ?? "detached"} ${cloned.commit?.slice(0, 12) ?? "(no commits)"}`;
    await (output === "json" ? printJson(cloned) : print(`${oneLine(`${cloned.path}  ${at}`)}\n`));
    return 0;
  });
}

/** From the environment and not from an option: a command line is for everybody to see. */
function credentialsOf({ tokenEnv, username }: Options): { username?: string; password: string } | undefined {
  if (tokenEnv === undefined) return undefined;
  const password = process.env[tokenEnv];
  if (password) return { password, ...(username !== undefined && { username }) };
  throw new HoldfastError("invalid_argument", `the variable ${tokenEnv} is not set`, {
    hint: `export ${tokenEnv}=… first; --token-env names a variable, it is not the token itself`,
  });
}

function showProgress({ phase, percent }: CloneProgress): void {
  process.stderr.write(`\r\u001b[K${oneLine(phase)} ${percent}%`);
}

async function show<T>(
  value: T,
  { output, asText }: { output: Context["output"]; asText: (value: T) => string },
): Promise<void> {
  await (output === "json" ? printJson(value) : print(asText(value)));
}

function statusText({ branch, commit, ahead, behind, files }: GitStatus): string {
  const distance = ahead || behind ? `, ${ahead} ahead, ${behind} behind` : "";
  const head = `on ${branch ?? "no branch"} at ${commit?.slice(0, 12) ?? "no commit"}${distance}`;
  const rows = files.map(({ path, from, index, worktree }) => {
    const staged = index === "unmodified" ? "" : `${index} (staged)`;
    const what = [staged, worktree === "unmodified" ? "" : worktree].filter((word) => word !== "").join(", ");
    return `${what.padEnd(20)}  ${from === undefined ? "" : `${from} -> `}${path}`;
  });
  return [head, ...rows].map((row) => `${oneLine(row)}\n`).join("");
}

function diffText({ files, truncated }: GitDiff): string {
  const patches = files.map(({ path, patch, change }) => patch ?? `${oneLine(`${change}: ${path}`)}\n`);
  return patches.join("") + (truncated ? "(longer patches were left out; -o json has all counts)\n" : "");
}

function collect(value: string, before: string[] = []): string[] {
  return [...before, value];
}

const EXAMPLES = `
Examples:
  holdfast git clone issue-42 https://example.com/team/app.git /workspace/app --depth 1
  GIT_TOKEN=… holdfast git clone issue-42 https://example.com/team/private.git /workspace/app --token-env GIT_TOKEN
  holdfast git status issue-42 /workspace/app
  holdfast git diff issue-42 /workspace/app --base main

A clone is there whole or not at all. The token is used for this one clone, and is neither on the sandbox's disk nor in
a URL, an argument, an environment or a log.`;
