/** The floors: what the same work costs on this machine with nothing of ours in the way. */

export async function bareSpawn(command: string[]): Promise<void> {
  await Bun.spawn(command, { stdio: ["ignore", "pipe", "pipe"] }).exited;
}

/** One bash that is fed lines through a pipe and answers each with a marker: no isolation, no savepoint, no log. */
export class BareShell {
  readonly #child = Bun.spawn(["bash", "--norc", "--noprofile"], {
    stdin: "pipe",
    stdout: "pipe",
    stderr: "ignore",
  });
  readonly #reader = this.#child.stdout.getReader();

  async exec(command: string): Promise<void> {
    this.#child.stdin.write(`${command}\necho done\n`);
    this.#child.stdin.flush();
    for (let seen = ""; !seen.includes("done\n"); ) {
      seen += new TextDecoder().decode((await this.#reader.read()).value);
    }
  }

  async close(): Promise<void> {
    this.#child.stdin.end();
    await this.#child.exited;
  }
}

/** Reads `bytes` of zeros through `cat` and a pipe; ms. */
export async function barePipe(bytes: number): Promise<number> {
  const before = performance.now();
  const child = Bun.spawn(["sh", "-c", `head -c ${bytes} /dev/zero | cat`], { stdout: "pipe" });
  let seen = 0;
  for await (const chunk of child.stdout) seen += chunk.length;
  if (seen !== bytes) throw new Error(`the pipe gave ${seen} of ${bytes} bytes`);
  return performance.now() - before;
}
