import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Sandbox } from "holdfast";
import { BashShell } from "../../packages/keeper/src/session/bash-shell.ts";
import type { Bench, Case } from "../bench.ts";
import { BareShell, bareSpawn } from "../floors.ts";
import type { Contender } from "../measure.ts";

const FLOOR = "a pipe to a bare bash";
/** As many as it takes until the runtime has compiled what a call needs: what is measured is a server in use. */
const WARM_UPS = 3_000;

/** A command in a shell that keeps its state, with a savepoint before each. */
export const session: Case = {
  name: "session",
  about: "A command in a session",
  async run(bench) {
    await using sandbox = await Sandbox.create({ network: "none" }, (await bench.server()).at);
    const shell = await sandbox.createSession();
    const bare = new BareShell();
    using peer = new SourcedState();
    let counted = 0;
    const contenders: Contender[] = [
      {
        role: "ours",
        name: "ours",
        run: async () => isNext(++counted, (await shell.exec("echo $((X+=1))")).stdout),
      },
      { role: "floor", name: FLOOR, run: () => bare.exec("echo $((X+=1))") },
      {
        role: "peer",
        name: "a bash for each call, with a sourced state file",
        run: () => peer.exec("echo $((X+=1))"),
      },
    ];
    bench.say("  warming up …");
    for (let i = 0; i < WARM_UPS; i++) await shell.exec("true");
    // Ten of each in turn: after one of each, the session would have made itself ready while the others ran.
    const tens = { rounds: bench.isShort ? 3 : 30, callsInARow: 10 };
    await bench.compare("back to back", contenders, { ...tens, aims: [{ atMost: 1.3 }] });
    await bench.compare("10 ms apart", contenders, { ...tens, pauseMs: 10, aims: [{ atMost: 0.6 }] });
    await bare.close();
    await shellAlone(bench);
    await sandbox.delete({ force: true });
  },
};

function isNext(expected: number, printed: string): void {
  if (printed !== `${expected}\n`) throw new Error(`the session counted ${printed}, not ${expected}`);
}

/** Without server and keeper around it: what the savepoints cost by themselves. */
async function shellAlone(bench: Bench): Promise<void> {
  const dir = mkdtempSync(join(tmpdir(), "holdfast-bench-"));
  const env = { PATH: process.env.PATH ?? "/usr/bin:/bin" };
  const path = Bun.which("bash") ?? "/bin/bash";
  const shell = new BashShell({ path, dir, cwd: dir, env, injected: [], marker: "bench", output: () => {} });
  const bare = new BareShell();
  try {
    await shell.start(undefined);
    const contenders: Contender[] = [
      {
        role: "ours",
        name: "ours",
        run: async () => {
          await shell.settle();
          await shell.run({ text: "X=$((X+1))", marker: "bench" });
        },
      },
      { role: "floor", name: FLOOR, run: () => bare.exec("X=$((X+1))") },
    ];
    await bench.compare("the shell alone, back to back", contenders, { rounds: 500 });
    await bench.compare("the shell alone, 10 ms apart", contenders, { rounds: 250, pauseMs: 10 });
  } finally {
    shell.close();
    await bare.close();
    rmSync(dir, { recursive: true, force: true });
  }
}

/** What is done where there is no session: the state goes to a file and comes from there, by a new shell each time. */
class SourcedState implements Disposable {
  readonly #dir = mkdtempSync(join(tmpdir(), "holdfast-bench-"));

  exec(command: string): Promise<string> {
    const state = join(this.#dir, "state");
    const script = `. "$0" 2>/dev/null; ${command}; { declare -p; declare -f; } > "$0" 2>/dev/null`;
    return bareSpawn(["bash", "-c", script, state]);
  }

  [Symbol.dispose](): void {
    rmSync(this.#dir, { recursive: true, force: true });
  }
}
