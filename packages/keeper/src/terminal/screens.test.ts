import { expect, setDefaultTimeout } from "bun:test";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import xterm from "@xterm/headless";
import { testWith } from "../test-with.ts";
import { Bench, TEST_MS } from "./test-bench.ts";
import type { TestViewer } from "./test-viewer.ts";

setDefaultTimeout(TEST_MS);

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

/** Waits until both see the same, and what they see is this. Programs draw in several pieces. */
async function bothShow(viewers: [TestViewer, TestViewer], text: RegExp): Promise<Screen> {
  const got = ([one, two]: [TestViewer, TestViewer]) => one.offset + two.offset;
  for (;;) {
    const before = got(viewers);
    const [one, two] = [await screenOf(viewers[0]), await screenOf(viewers[1])];
    if (Bun.deepEquals(one, two) && text.test(one.lines.join("\n"))) return one;
    const difference = `${one.lines.join("\n")}\n--- is not, or lacks ${text}:\n${two.lines.join("\n")}`;
    await Promise.any(viewers.map((viewer) => viewer.until(() => got(viewers) > before, difference)));
  }
}

async function shows(viewer: TestViewer, text: RegExp): Promise<void> {
  await bothShow([viewer, viewer], text);
}

function textFile(bench: Bench): string {
  const path = join(bench.home, "text");
  writeFileSync(path, Array.from({ length: 500 }, (_, i) => `line ${i + 1} of the text`).join("\n"));
  return path;
}

const vim = { program: "vim", from: "vim-tiny" };
interface Case {
  readonly needs: { program: string; from: string };
  readonly argv: (file: string) => string[];
  readonly begins: RegExp;
  readonly keys: string;
  readonly ends: RegExp;
  readonly buffer: Screen["buffer"];
}

const cases: Case[] = [
  {
    needs: vim,
    argv: (file) => ["vim", "-u", "NONE", "-N", file],
    begins: /line 1 of the text/,
    keys: "100Gzt3wiXYZ \x1b",
    ends: /XYZ/,
    buffer: "alternate",
  },
  {
    needs: { program: "less", from: "less" },
    argv: (file) => ["less", file],
    begins: /line 1 of the text/,
    keys: "200g",
    ends: /line 222 of the text/,
    buffer: "alternate",
  },
  {
    needs: { program: "top", from: "procps" },
    argv: () => ["top", "-d", "100"],
    begins: /load average[\s\S]+PID/,
    keys: "",
    ends: /load average[\s\S]+PID/,
    buffer: "normal",
  },
];

for (const { needs, argv, begins, keys, ends, buffer } of cases) {
  testWith(needs)(`${needs.program}: the screen after a reconnect is the screen before`, async () => {
    await using bench = new Bench();
    await bench.create({ id: "t", command: argv(textFile(bench)), ...SIZE });
    const viewer = await bench.connect("t");
    await shows(viewer, begins);
    viewer.type(keys);
    await shows(viewer, ends);
    const newcomer = await bench.connect("t", "readonly=true");
    expect((await bothShow([viewer, newcomer], ends)).buffer).toBe(buffer);
  });
}

testWith(vim)("vim: made whole after the replay buffer lost its beginning", async () => {
  await using bench = new Bench();
  await bench.create({ id: "t", command: ["vim", "-u", "NONE", "-N", textFile(bench)], ...SIZE });
  const viewer = await bench.connect("t");
  await shows(viewer, /line 1 of the text/);
  for (let i = 0; (await bench.look("t")).firstOffset === 0; i++) viewer.type(i % 2 ? "gg\x0c" : "G\x0c");
  viewer.type("250GztiHERE\x1b");
  await shows(viewer, /HERE/);
  const late = await bench.connect("t");
  await late.until((v) => v.frame("truncated") !== undefined);
  expect(late.frame("truncated")?.restore).toContain("\x1b[?1049h");
  await bothShow([viewer, late], /HERE[\s\S]+line 27[0-4]/);
});
