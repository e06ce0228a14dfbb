import { Sandbox, type Terminal } from "holdfast";
import type { Bench, Case } from "../bench.ts";
import { type Contender, timed } from "../measure.ts";

const FLOOR = "a bare PTY";

/** Keys and floods. */
export const terminal: Case = {
  name: "terminal",
  about: "A terminal",
  async run(bench) {
    const sandbox = await Sandbox.create({ network: "none" }, (await bench.server()).at);
    await keys(bench, sandbox);
    await flood(bench, sandbox);
    await sandbox.delete({ force: true });
  },
};

/** One key, until its echo is here. */
async function keys(bench: Bench, sandbox: Sandbox): Promise<void> {
  const term = await sandbox.terminal({ command: ["cat"], cols: 80, rows: 24 });
  const ours = new Echo((key) => void term.write(key));
  void feed(term, ours);
  const floor = new Echo((key) => bare.terminal?.write(key));
  const bare = Bun.spawn(["cat"], {
    terminal: { cols: 80, rows: 24, data: (_, bytes) => floor.arrived(bytes.length) },
  });
  const contenders: Contender[] = [
    { role: "ours", name: "ours", run: () => ours.type() },
    { role: "floor", name: FLOOR, run: () => floor.type() },
  ];
  await bench.compare("a key and its echo", contenders, { rounds: 300, pauseMs: 2 });
  bare.kill();
  await bare.exited;
  await term.destroy();
}

async function feed(term: Terminal, echo: Echo): Promise<void> {
  for await (const event of term) if (event.type === "output") echo.arrived(event.bytes.length);
}

/** Types one key, and resolves with its echo. */
class Echo {
  readonly #write: (key: string) => void;
  #arrived: (() => void) | undefined;

  constructor(write: (key: string) => void) {
    this.#write = write;
  }

  async type(): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#arrived = resolve;
    this.#write("x");
    await promise;
  }

  arrived(bytes: number): void {
    if (bytes > 0) this.#arrived?.();
  }
}

/** What a program writes before anybody looks is kept only as far as the replay goes: so it says that it is ready, and waits for a key. */
async function flood(bench: Bench, sandbox: Sandbox): Promise<void> {
  const bytes = (bench.isShort ? 10 : 100) * 1e6;
  bench.say(`  ${bytes / 1e6} MB through one …`);
  const command = ["sh", "-c", `stty raw -echo; printf R; head -c 1 > /dev/null; head -c ${bytes} /dev/zero`];
  const expected = bytes + 1;
  const ours = await timed(async () => {
    const term = await sandbox.terminal({ command, cols: 80, rows: 24 });
    let seen = 0;
    for await (const event of term) {
      if (event.type === "truncated") throw new Error("the terminal lost something");
      if (seen === 0) await term.write("x");
      seen += event.bytes.length;
    }
    if (seen !== expected) throw new Error(`${seen} of ${expected} bytes arrived`);
    await term.destroy();
  });
  let seen = 0;
  const floor = await timed(async () => {
    const child = Bun.spawn(command, {
      terminal: {
        ...{ cols: 80, rows: 24 },
        data: (terminal, data) => {
          if (seen === 0) terminal.write("x");
          seen += data.length;
        },
      },
    });
    await child.exited;
    while (seen < expected) await Bun.sleep(1); // the rest is still on its way
  });
  bench.line(`${bytes / 1e6} MB through one`, "MB/s", [
    { role: "ours", name: "ours", value: bytes / 1e3 / ours },
    { role: "floor", name: FLOOR, value: bytes / 1e3 / floor },
  ]);
}
