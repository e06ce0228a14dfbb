import type { Ending, LogEvent } from "@holdfast/protocol";

/** A real program with its output kept as log events: what the fake server has in place of a keeper. */
export class FakeRun {
  readonly id: string;
  readonly request: string;
  readonly command: string | string[];
  readonly events: LogEvent[] = [];
  readonly startedAt = new Date().toISOString();
  readonly pid: number;
  readonly ended: Promise<Ending>;
  ending: Ending | undefined;
  nextOffset = 0;
  cancelled = false;
  readonly #child: Bun.Subprocess<"pipe", "pipe", "pipe">;
  #changed = Promise.withResolvers<void>();

  constructor(of: { id: string; request: string; command: string | string[]; env: Record<string, string> }) {
    this.id = of.id;
    this.request = of.request;
    this.command = of.command;
    // Not bash: on the socket that Bun gives as stdin it would take itself for a remote shell and read ~/.bashrc.
    const argv = typeof of.command === "string" ? ["sh", "-c", of.command] : of.command;
    const env = { PATH: process.env.PATH ?? "/usr/bin:/bin", ...of.env };
    this.#child = Bun.spawn(argv, { env, stdin: "pipe", stdout: "pipe", stderr: "pipe", detached: true });
    this.pid = this.#child.pid;
    this.ended = this.#run();
  }

  /** Resolves when there is a new event. */
  changed(): Promise<void> {
    return this.#changed.promise;
  }

  async write(bytes: Uint8Array): Promise<void> {
    this.#child.stdin.write(bytes);
    await this.#child.stdin.flush();
  }

  async closeStdin(): Promise<void> {
    await this.#child.stdin.end();
  }

  kill(signal: NodeJS.Signals = "SIGKILL"): void {
    if (this.ending === undefined) process.kill(-this.pid, signal); // the group: a shell's children as well
  }

  text(stream: "stdout" | "stderr"): string {
    const pieces = this.events.flatMap((event) => (event.type === stream ? [event.bytes] : []));
    return Buffer.concat(pieces).toString();
  }

  async #run(): Promise<Ending> {
    await Promise.all([this.#pump("stdout"), this.#pump("stderr"), this.#child.exited]);
    const ending: Ending = {
      exitCode: await this.#child.exited,
      signal: this.#child.signalCode === null ? null : String(this.#child.signalCode),
      timedOut: false,
      cancelled: this.cancelled,
      oomKilled: false,
    };
    this.ending = ending;
    this.#add({ type: "exit", offset: this.nextOffset, ...ending });
    return ending;
  }

  async #pump(type: "stdout" | "stderr"): Promise<void> {
    for await (const bytes of this.#child[type]) {
      const offset = this.nextOffset;
      this.nextOffset += bytes.length;
      this.#add({ type, offset, bytes });
    }
  }

  #add(event: LogEvent): void {
    this.events.push(event);
    this.#changed.resolve();
    this.#changed = Promise.withResolvers();
  }
}
