/** The floors: what the same work costs on this machine with nothing of ours in the way. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

/** Runs a program to its end and gives back what it printed; anything but success is an error. */
export async function bareSpawn(command: string[], options: { stdin?: Uint8Array } = {}): Promise<string> {
  const child = Bun.spawn(command, { stdin: options.stdin ?? "ignore", stdout: "pipe", stderr: "pipe" });
  const [stdout, stderr, exitCode] = await Promise.all([
    new Response(child.stdout).text(),
    new Response(child.stderr).text(),
    child.exited,
  ]);
  if (exitCode !== 0) throw new Error(`${command.join(" ").slice(0, 200)} ended with ${exitCode}: ${stderr}`);
  return stdout;
}

/** A program in C that spawns one command over and over, and says what each took. */
export class SpawnInC implements AsyncDisposable {
  readonly #dir = mkdtempSync(join(tmpdir(), "holdfast-bench-"));
  readonly #children: Bun.Subprocess[] = [];

  constructor() {
    const { exitCode, stderr } = Bun.spawnSync([
      ...["cc", "-O2", "-Wall", "-Werror", "-o", join(this.#dir, "spawn"), join(import.meta.dir, "spawn.c")],
    ]);
    if (exitCode !== 0) throw new Error(`the floor in C does not compile: ${stderr}`);
  }

  of(command: readonly string[]): CommandInC {
    const child = Bun.spawn([join(this.#dir, "spawn"), ...command], {
      stdin: "pipe",
      stdout: "pipe",
      stderr: "inherit",
      // As small as the environment that a sandbox's work has.
      env: { PATH: process.env.PATH ?? "", HOME: "/", USER: "bench", LANG: "C.UTF-8" },
    });
    this.#children.push(child);
    const lines = child.stdout.pipeThrough(new TextDecoderStream() as never).getReader();
    const ask = async (question: string): Promise<number> => {
      child.stdin.write(`${question}\n`);
      child.stdin.flush();
      const { value, done } = (await lines.read()) as { value?: string; done: boolean };
      if (done) throw new Error(`${command.join(" ")} failed in the floor`);
      return Number(value);
    };
    return {
      once: async () => ({ ms: await ask("one") }),
      rate: ({ callers, seconds }) => ask(`rate ${callers} ${seconds}`),
    };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const child of this.#children) child.kill();
    await Promise.all(this.#children.map((child) => child.exited));
    rmSync(this.#dir, { recursive: true, force: true });
  }
}

export interface CommandInC {
  once(): Promise<{ ms: number }>;
  /** per second */
  rate(options: { callers: number; seconds: number }): Promise<number>;
}

/** One bash that is fed lines through a pipe and answers each with a marker: no isolation, no savepoint, no log. */
export class BareShell {
  readonly #child = Bun.spawn(["bash", "--norc", "--noprofile"], {
    stdin: "pipe",
    stdout: "pipe",
    stderr: "ignore",
  });
  readonly #reader = this.#child.stdout.getReader();

  async exec(command: string): Promise<string> {
    this.#child.stdin.write(`${command}\necho done\n`);
    this.#child.stdin.flush();
    let seen = "";
    while (!seen.endsWith("done\n")) seen += new TextDecoder().decode((await this.#reader.read()).value);
    return seen.slice(0, -"done\n".length);
  }

  async close(): Promise<void> {
    this.#child.stdin.end();
    await this.#child.exited;
  }
}

/** Reads what a command writes, and throws it away; how much it was is checked. */
export async function drain(command: string[], bytes: number): Promise<void> {
  const child = Bun.spawn(command, { stdin: "ignore", stdout: "pipe", stderr: "inherit" });
  let seen = 0;
  for await (const chunk of child.stdout) seen += chunk.length;
  if (seen !== bytes) throw new Error(`${command[0]} gave ${seen} of ${bytes} bytes`);
}

/** Writes so many bytes into a command that counts them. */
export async function pour(command: string[], bytes: number): Promise<void> {
  const child = Bun.spawn(command, { stdin: "pipe", stdout: "pipe", stderr: "inherit" });
  const chunk = new Uint8Array(1024 ** 2);
  for (let left = bytes; left > 0; left -= chunk.length) {
    child.stdin.write(left < chunk.length ? chunk.subarray(0, left) : chunk);
    await child.stdin.flush();
  }
  await child.stdin.end();
  const counted = Number(await new Response(child.stdout).text());
  if (counted !== bytes) throw new Error(`${command[0]} got ${counted} of ${bytes} bytes`);
}
