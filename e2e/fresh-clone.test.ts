import { expect, test } from "bun:test";
import { chmodSync, mkdtempSync, readFileSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { ownEnvironment, root, run } from "./harness.ts";

const NOBODY = 65534;
const TUN = "/dev/net/tun";

/** The commands of the README's tour, as typed. */
const tour =
  /<!-- tour -->\n```sh\n([\s\S]*?)```/.exec(readFileSync(join(root, "README.md"), "utf8"))?.[1] ?? "";

test.each([
  ["root", 0, 47_510],
  ["a plain user", NOBODY, 47_511],
])(
  "from a fresh clone, as %s: npm start, the README's tour as typed, Ctrl-C",
  async (_, uid, port) => {
    const home = mkdtempSync(join(tmpdir(), "holdfast-clone-"));
    const tunMode = statSync(TUN).mode;
    // What distributions do by default, and what the doctor advises where they did not.
    if (uid !== 0) chmodSync(TUN, 0o666);
    try {
      // As root the sandboxes run as users of their own, who must be able to pass through.
      chmodSync(home, 0o711);
      await expectOk(["git", "clone", "--quiet", root, join(home, "clone")]);
      await expectOk(["chown", "-R", `${uid}:${uid}`, home]);
      const env = {
        HOME: home,
        HOLDFAST_PORT: String(port),
        HOLDFAST_URL: `http://127.0.0.1:${port}`,
        HOLDFAST_DATA_DIR: join(home, "data"),
      };
      const as = ["setpriv", `--reuid=${uid}`, `--regid=${uid}`, "--clear-groups"];
      const first = await npmStart({ as, env, cwd: join(home, "clone") });
      const walk = await run([...as, "bash", "-euxo", "pipefail", "-c", tour], {
        env,
        cwd: join(home, "clone"),
      });
      expect(walk.stderr).not.toContain("error:");
      expect(walk.exitCode).toBe(0);
      for (const expected of ["hello from a sandbox", "made it", "stop_requested"])
        expect(walk.stdout).toContain(expected);
      expect(await first.interrupt()).toContain("No sandbox was running");

      const second = await npmStart({ as, env, cwd: join(home, "clone") });
      await expectOk([...as, "npx", "holdfast", "create", "--name", "stays"], {
        env,
        cwd: join(home, "clone"),
      });
      expect(await second.interrupt()).toContain("1 sandbox keeps running: stays");
      const third = await npmStart({ as, env, cwd: join(home, "clone") });
      expect(third.output()).toContain("found again:  1 sandbox");
      await expectOk([...as, "npx", "holdfast", "rm", "stays"], { env, cwd: join(home, "clone") });
      await third.interrupt();
    } finally {
      chmodSync(TUN, tunMode & 0o777);
      rmSync(home, { recursive: true, force: true });
    }
  },
  300_000,
);

/** `npm start` in a session of its own, as a terminal would have it, until it says that it is ready. */
async function npmStart(options: { as: string[]; env: Record<string, string>; cwd: string }) {
  const child = Bun.spawn(["setsid", ...options.as, "npm", "start"], {
    stdin: "ignore",
    stdout: "pipe",
    stderr: "inherit",
    cwd: options.cwd,
    env: { ...ownEnvironment(), ...options.env },
  });
  let output = "";
  const ready = Promise.withResolvers<void>();
  const reading = (async () => {
    for await (const chunk of child.stdout) {
      output += new TextDecoder().decode(chunk);
      if (output.includes("Ctrl-C stops the server")) ready.resolve();
    }
    ready.reject(new Error(`npm start ended:\n${output}`));
  })();
  await ready.promise;
  return {
    output: () => output,
    /** Ctrl-C: the whole foreground group gets it. */
    async interrupt() {
      process.kill(-child.pid, "SIGINT");
      await child.exited;
      await reading;
      return output;
    },
  };
}

async function expectOk(command: string[], options: Parameters<typeof run>[1] = {}): Promise<void> {
  const { exitCode, stderr } = await run(command, options);
  expect({ command, exitCode, stderr: exitCode === 0 ? "" : stderr }).toEqual({
    command,
    exitCode: 0,
    stderr: "",
  });
}
