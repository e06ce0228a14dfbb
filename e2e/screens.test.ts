import { afterAll, beforeAll, expect, test } from "bun:test";
import xterm from "@xterm/headless";
import { Sandbox, type Terminal } from "holdfast";
import { TestServer } from "./harness.ts";

const SIZE = { cols: 90, rows: 25 };
/** Vim waits for a second after an escape: a longer key sequence might come. */
const LEFT_INSERT = /^(?![\s\S]*-- INSERT --)[\s\S]*XYZ line 100/;

let server: TestServer;
let sandbox: Sandbox;
beforeAll(async () => {
  server = await TestServer.start();
  sandbox = await Sandbox.create({ network: "none" }, server.at);
  await sandbox.exec("for i in $(seq 500); do echo line $i of the text; done > /workspace/text");
});
afterAll(() => server.dispose());

test.each([
  ["vim", ["vim", "-u", "NONE", "-N", "/workspace/text"], "100GztiXYZ \x1b", LEFT_INSERT],
  ["less", ["less", "/workspace/text"], "200g", /line 200 of the text/],
  ["a Python prompt", ["python3", "-q"], "6*7\r", /42/],
  ["a full-screen program that repaints", ["top", "-d", "100"], "", /PID USER/],
])(
  "28: %s: the screen of one who comes back, also after a kill -9 of the server, equals the screen before",
  async (name, command, keys, expected) => {
    const id = String(name).replaceAll(/\W+/g, "-");
    const first = await sandbox.terminal({ id, command, ...SIZE });
    const before = new Screen(first);
    await before.until(/\S/);
    await first.write(keys);
    await before.until(expected);
    await before.isQuiet();
    await first.close();
    await server.restart("SIGKILL");
    const second = await sandbox.attachTerminal(id);
    const after = new Screen(second);
    await after.until(expected);
    await after.isQuiet();
    expect(after.shown()).toEqual(before.shown());
    await second.destroy();
  },
  120_000,
);

/** What a person would see of a terminal. */
class Screen {
  readonly #emulator = new xterm.Terminal({ ...SIZE, allowProposedApi: true, scrollback: 0 });
  #lastChange = performance.now();

  constructor(terminal: Terminal) {
    void this.#play(terminal);
  }

  shown(): { lines: string[]; cursor: [number, number]; buffer: string } {
    const { active } = this.#emulator.buffer;
    const lines = Array.from(
      { length: SIZE.rows },
      (_, y) => active.getLine(active.baseY + y)?.translateToString(true) ?? "",
    );
    return { lines, cursor: [active.cursorX, active.cursorY], buffer: active.type };
  }

  async until(pattern: RegExp): Promise<void> {
    for (
      const deadline = performance.now() + 15_000;
      !pattern.test(this.shown().lines.join("\n"));
      await Bun.sleep(10)
    ) {
      if (performance.now() > deadline)
        throw new Error(`never showed ${pattern}:\n${this.shown().lines.join("\n")}`);
    }
  }

  /** Nothing has changed for a moment: what was on its way has arrived. */
  async isQuiet(): Promise<void> {
    while (performance.now() - this.#lastChange < 300) await Bun.sleep(20);
  }

  async #play(terminal: Terminal): Promise<void> {
    for await (const event of terminal) {
      if (event.type === "output") await new Promise<void>((done) => this.#emulator.write(event.bytes, done));
      this.#lastChange = performance.now();
    }
  }
}
