// `bun bench/session-shell.ts`: what a savepoint after every command costs, beside a bare pipe to bash, in one run.
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { BashShell } from "../packages/keeper/src/session/bash-shell.ts";
import { BareShell } from "./bare.ts";
import { interleaved } from "./measure.ts";

const TEXT = process.argv[2] ?? "X=$((X+1))";
const dir = mkdtempSync(join(tmpdir(), "session-shell-"));
const path = Bun.which("bash");
if (path === null) throw new Error("this needs bash");
const env = { PATH: process.env.PATH ?? "/usr/bin:/bin" };
const shell = new BashShell({ path, dir, cwd: dir, env, injected: [], marker: "bench", output: () => {} });
const bare = new BareShell();
try {
  await shell.start(undefined);
  const contenders = {
    bare: () => bare.exec(TEXT),
    savepoint: async () => {
      await shell.settle();
      await shell.run({ text: TEXT, marker: "bench" });
    },
  };
  for (const [pauseMs, rounds] of [
    [0, 1000],
    [10, 250],
  ] as const) {
    const times = await interleaved(contenders, { rounds, ...(pauseMs > 0 && { pauseMs }) });
    const shown = Object.entries(times).map(
      ([name, { p50, p95 }]) => `${name} ${p50.toFixed(3)} / ${p95.toFixed(3)}`,
    );
    process.stdout.write(`${pauseMs} ms apart, p50 / p95 in ms: ${shown.join(", ")}\n`);
  }
} finally {
  shell.close();
  await bare.close();
  rmSync(dir, { recursive: true, force: true });
}
