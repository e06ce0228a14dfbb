import { expect, test } from "bun:test";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import xterm from "@xterm/headless";
import { Bench, type TestViewer } from "./test-bench.ts";

const SIZE = { cols: 90, rows: 25 };

/** What a person would see: the lines, the cursor, and which of the two screens. */
interface Screen {
  readonly lines: string[];
  readonly cursor: [x: number, y: number];
  readonly buffer: "normal" | "alternate";
}

/** Plays what a viewer got into a terminal emulator. */
async function screenOf(viewer: TestViewer): Promise<Screen> {
  const emulator = new xterm.Terminal({ ...SIZE, allowProposedApi: true, scrollback: 0 });
  const play = (data: string | Uint8Array) => new Promise<void>((done) => emulator.write(data, done));
  await play(viewer.frame("truncated")?.restore ?? "");
  await play(viewer.bytes);
  const { active } = emulator.buffer;
  const lines = Array.from(
    { length: SIZE.rows },
    (_, y) => active.getLine(active.baseY + y)?.translateToString(true) ?? "",
  );
  const screen: Screen = { lines, cursor: [active.cursorX, active.cursorY], buffer: active.type };
  emulator.dispose();
  return screen;
}

async function showing(viewer: TestViewer, text: string | RegExp): Promise<Screen> {
  const has = (screen: Screen) => screen.lines.join("\n").match(text) !== null;
  let screen = await screenOf(viewer);
  for (const deadline = Date.now() + 8_000; !has(screen) && Date.now() < deadline; ) {
    const { offset } = viewer;
    await Promise.race([viewer.until((v) => v.offset > offset), Bun.sleep(200)]);
    screen = await screenOf(viewer);
  }
  expect(screen.lines.join("\n")).toMatch(text);
  return screen;
}

/** The screen of one who attaches anew, once it has as much as the first has. */
async function screenOfNewcomer(bench: Bench, first: TestViewer): Promise<Screen> {
  const { nextOffset } = await bench.look("t");
  await first.until(({ offset }) => offset >= nextOffset);
  const newcomer = await bench.connect("t", "readonly=true");
  await newcomer.until(({ offset }) => offset >= nextOffset);
  return screenOf(newcomer);
}

function textFile(bench: Bench): string {
  const path = join(bench.home, "text");
  writeFileSync(path, Array.from({ length: 500 }, (_, i) => `line ${i + 1} of the text`).join("\n"));
  return path;
}

const programs: { name: string; argv: (file: string) => string[]; keys: string; shows: RegExp }[] = [
  { name: "vim", argv: (file) => ["vim", "-u", "NONE", "-N", file], keys: "100Gzt3wiXYZ \x1b", shows: /XYZ/ },
  { name: "less", argv: (file) => ["less", file], keys: "200g", shows: /line 222 of the text/ },
  { name: "top", argv: () => ["top", "-d", "100"], keys: "", shows: /load average[\s\S]+PID/ },
];

for (const { name, argv, keys, shows } of programs) {
  const missing = Bun.which(name) === null;
  if (missing && process.env.CI) throw new Error(`CI needs the Debian package that has ${name}`);

  test.skipIf(missing)(
    `${name}: the screen after a reconnect is the screen before (needs ${name})`,
    async () => {
      await using bench = new Bench();
      const file = textFile(bench);
      await bench.create({ id: "t", command: argv(file), ...SIZE });
      const viewer = await bench.connect("t");
      await showing(viewer, name === "top" ? shows : /line 1 of the text/);
      viewer.type(keys);
      const before = await showing(viewer, shows);
      expect(before.buffer).toBe(name === "top" ? "normal" : "alternate");
      expect(await screenOfNewcomer(bench, viewer)).toEqual(await screenOf(viewer));
    },
    20_000,
  );
}

test.skipIf(Bun.which("vim") === null)(
  "vim: made whole after the replay buffer lost its beginning (needs vim)",
  async () => {
    await using bench = new Bench();
    await bench.create({ id: "t", command: ["vim", "-u", "NONE", "-N", textFile(bench)], ...SIZE });
    const viewer = await bench.connect("t");
    await showing(viewer, /line 1 of the text/);
    for (let i = 0; (await bench.look("t")).firstOffset === 0; i++) viewer.type(i % 2 ? "gg\x0c" : "G\x0c");
    viewer.type("250GztiHERE\x1b");
    const before = await showing(viewer, /HERE/);
    const late = await bench.connect("t");
    await late.until((viewer) => viewer.frame("truncated") !== undefined);
    expect(late.frame("truncated")?.restore).toContain("\x1b[?1049h");
    const after = await showing(late, /HERE[\s\S]+line 27[0-4]/);
    expect(after).toEqual(before);
  },
  30_000,
);
