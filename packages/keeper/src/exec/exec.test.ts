import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { createHash } from "node:crypto";
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { startTestKeeper, type TestKeeper } from "../test-keeper.ts";

let keeper: TestKeeper;
beforeAll(async () => {
  keeper = await startTestKeeper();
});
afterAll(async () => {
  const { dir } = keeper;
  await keeper[Symbol.asyncDispose]();
  expect(keeper.processes()).toEqual([]);
  expect(existsSync(dir)).toBe(false);
});

const exec = async (request: Record<string, unknown>) => (await keeper.call("/v1/exec", request)).body;
const fixture = (name: string) => join(import.meta.dir, "../../fixtures", name);

test("the whole result of a command", async () => {
  expect(await exec({ command: "echo out; echo err >/dev/stderr; exit 3", commandId: "whole" })).toEqual({
    commandId: "whole",
    status: "exited",
    shell: "bash",
    exitCode: 3,
    signal: null,
    timedOut: false,
    cancelled: false,
    oomKilled: false,
    durationMs: expect.any(Number),
    stdout: "out\n",
    stderr: "err\n",
    truncated: { stdoutBytes: 0, stderrBytes: 0 },
    log: { firstOffset: 0, nextOffset: 8 },
  });
});

test("nothing of one command is known to the next", async () => {
  await exec({ command: "cd /tmp; export A=1; f() { :; }" });
  const { stdout } = await exec({ command: "pwd; echo [$A]; type f 2>&1 | head -c 20" });
  expect(stdout.split("\n").slice(0, 2)).toEqual([keeper.dir, "[]"]);
});

test("200 at once: 200 right answers", async () => {
  const answers = await Promise.all(Array.from({ length: 200 }, (_, i) => exec({ command: `echo ${i}` })));
  expect(answers.map(({ stdout }) => stdout)).toEqual(Array.from({ length: 200 }, (_, i) => `${i}\n`));
});

describe("output", () => {
  test("bytes are counted, not characters or strings", async () => {
    const { stdout, log } = await exec({ command: "printf 'a\\0b'", encoding: "base64" });
    expect([stdout, log.nextOffset]).toEqual([btoa("a\0b"), 3]);
  });

  test("a character whose bytes arrive apart is whole", async () => {
    const command = "for b in '\\342' '\\202' '\\254'; do printf $b; sleep 0.05; done";
    expect((await exec({ command })).stdout).toBe("€");
  });

  test("a character that the bound cuts is left out and counted", async () => {
    const answer = await exec({ command: "printf €€", maxOutputBytes: 4 });
    expect([answer.stdout, answer.truncated]).toEqual(["€", { stdoutBytes: 3, stderrBytes: 0 }]);
  });

  test("100 MB are bounded, and what is missing is counted; asking again gives the same", async () => {
    const request = {
      command: "head -c 100000000 /dev/zero | tr '\\0' x; head -c 2000000 /dev/zero >&2",
      commandId: "big",
      maxOutputBytes: 1000,
      encoding: "base64",
    };
    const first = await exec(request);
    expect(first).toMatchObject({
      exitCode: 0,
      stdout: btoa("x".repeat(1000)),
      truncated: { stdoutBytes: 99_999_000, stderrBytes: 1_999_000 },
    });
    expect(first.log.nextOffset).toBe(102_000_000);
    expect(first.log.firstOffset).toBeGreaterThan(0);
    expect(await exec(request)).toEqual(first);
    expect((await keeper.call("/v1/commands/big")).body).toEqual(first);
  });

  test("a background child that holds stdout does not hold up the answer, and does not die of it", async () => {
    const done = join(keeper.dir, "late");
    const started = performance.now();
    const { stdout } = await exec({ command: `(sleep 0.5; echo late; echo late && touch ${done}) & echo x` });
    expect(stdout).toBe("x\n");
    expect(performance.now() - started).toBeLessThan(400);
    expect(
      (await exec({ command: `while ! test -e ${done}; do sleep 0.05; done`, timeoutMs: 3000 })).exitCode,
    ).toBe(0);
  });
});

describe("endings", () => {
  test("exit codes 0 to 255", async () => {
    const codes = [0, 1, 2, 42, 124, 126, 127, 128, 137, 200, 254, 255];
    const answers = await Promise.all(codes.map((code) => exec({ command: `exit ${code}` })));
    expect(answers.map(({ exitCode, signal }) => [exitCode, signal])).toEqual(
      codes.map((code) => [code, null]),
    );
  });

  test.each([
    ["SIGTERM", 143],
    ["SIGKILL", 137],
    ["SIGSEGV", 139],
    ["SIGHUP", 129],
  ])("death by %s", async (signal, exitCode) => {
    const answer = await exec({ command: ["bash", "-c", `kill -${signal.slice(3)} $$`] });
    expect(answer).toMatchObject({ signal, exitCode, timedOut: false, cancelled: false, oomKilled: false });
  });

  test("a timeout keeps the output so far", async () => {
    const answer = await exec({ command: "echo before; sleep 100; echo after", timeoutMs: 150 });
    expect(answer).toMatchObject({ exitCode: 124, timedOut: true, signal: "SIGTERM", stdout: "before\n" });
    expect(answer.kill).toEqual({ verified: "lineage", killed: 2, survivors: [], unattributed: [] });
  });

  test("a timeout ends what ignores SIGTERM, forks twice, calls setsid and closes its descriptors", async () => {
    const marker = `daemon-${crypto.randomUUID()}`;
    const started = performance.now();
    const answer = await exec({ command: ["python3", fixture("daemon.py"), marker], timeoutMs: 300 });
    expect(answer).toMatchObject({ exitCode: 124, timedOut: true, kill: { survivors: [] } });
    expect(performance.now() - started).toBeLessThan(300 + 2000);
    expect(keeper.processes()).toEqual([]);
  });

  test("yieldMs answers early; cancel ends it", async () => {
    const early = await exec({ command: "echo a; sleep 100", commandId: "early", yieldMs: 100 });
    expect(early).toEqual({
      commandId: "early",
      status: "running",
      shell: "bash",
      durationMs: expect.any(Number),
      log: { firstOffset: 0, nextOffset: 2 },
    });
    const { body } = await keeper.call("/v1/commands/early/cancel", {});
    expect(body).toMatchObject({
      status: "exited",
      cancelled: true,
      timedOut: false,
      exitCode: 143,
      stdout: "a\n",
    });
    expect((await keeper.call("/v1/commands/early/cancel", {})).body).toEqual(body);
  });

  test("a client that leaves does not end the command", async () => {
    const gone = new AbortController();
    const body = JSON.stringify({ command: "sleep 0.3; echo done", commandId: "left" });
    const request = keeper.request("/v1/exec", { method: "POST", body, signal: gone.signal });
    await Bun.sleep(100);
    gone.abort();
    expect(await request.catch(() => "aborted")).toBe("aborted");
    expect(await exec({ command: "sleep 0.3; echo done", commandId: "left" })).toMatchObject({
      stdout: "done\n",
    });
  });
});

describe("at most once", () => {
  test("one id from 20 callers: one run, 20 equal answers", async () => {
    const file = join(keeper.dir, "runs");
    const request = { command: `echo run >>${file}; sleep 0.1; echo $$`, commandId: "twenty" };
    const answers = await Promise.all(Array.from({ length: 20 }, () => exec(request)));
    expect(new Set(answers.map((answer) => JSON.stringify(answer))).size).toBe(1);
    expect(readFileSync(file, "utf8")).toBe("run\n");
    expect(await exec({ ...request, yieldMs: 5000 })).toEqual(answers[0]);
  });

  test("the same id for other work is refused", async () => {
    await exec({ command: "true", commandId: "mine" });
    expect(await keeper.call("/v1/exec", { command: "false", commandId: "mine" })).toEqual({
      status: 409,
      body: {
        error: {
          code: "already_exists",
          message: "the id mine was already used for another request",
          hint: "use a new id for new work; send exactly the same request to attach to the first run",
          retryable: false,
          started: "no",
          details: { id: "mine", kind: "exec" },
        },
      },
    });
    const process = await keeper.call("/v1/processes", { command: "true", processId: "mine" });
    expect([process.status, process.body.error.code]).toEqual([409, "already_exists"]);
  });

  test("a command that could not start may be tried again under its id", async () => {
    const command = [join(keeper.dir, "later")];
    expect((await keeper.call("/v1/exec", { command, commandId: "later" })).status).toBe(400);
    writeFileSync(join(keeper.dir, "later"), "#!/bin/sh\necho ok\n", { mode: 0o755 });
    expect(await exec({ command, commandId: "later" })).toMatchObject({ stdout: "ok\n", shell: "none" });
  });

  test("an id of ours without a record is expired, not new", async () => {
    const answer = await keeper.call("/v1/exec", {
      command: "true",
      commandId: "cmd-0mwh00000-0123456789ab",
    });
    expect([answer.status, answer.body.error.code]).toEqual([410, "record_expired"]);
  });
});

describe("input", () => {
  test("50 MB of stdin arrive exactly", async () => {
    const bytes = Buffer.alloc(50_000_000, "0123456789abcdef\n");
    const wanted = createHash("sha256").update(bytes).digest("hex");
    const { stdout } = await exec({ command: "sha256sum", stdin: { base64: bytes.toString("base64") } });
    expect(stdout).toBe(`${wanted}  -\n`);
  });

  test.each([
    ["without stdin there is end of file at once", { command: "read x; echo $?" }, "1\n"],
    ["text", { command: "cat", stdin: "€\n" }, "€\n"],
    ["stdin can be opened by name", { command: "cat /dev/stdin", stdin: "x" }, "x"],
    ["a program that does not read its input", { command: "echo ok", stdin: "x".repeat(1_000_000) }, "ok\n"],
  ])("%s", async (_, request, stdout) => {
    expect(await exec(request)).toMatchObject({ stdout, stderr: "" });
  });

  test("arguments arrive as given", async () => {
    const given = ["a b", "'", '"', "x\ny", "$HOME", "*", "", "-n", "\\", "€"];
    const { stdout } = await exec({ command: ["bash", "-c", 'printf "%s\\0" "$@"', "--", ...given] });
    expect(stdout.split("\0").slice(0, -1)).toEqual(given);
  });

  test("environment: a later layer wins, null unsets, nothing else gets in", async () => {
    const { stdout } = await exec({ command: ["env"], env: { HOME: "/else", A: "1\n2" }, commandId: "env" });
    expect(stdout.split("\n").sort()).toEqual([
      "",
      "2",
      "A=1",
      "HOLDFAST_COMMAND=env",
      `HOLDFAST_SANDBOX_ID=${keeper.boot.sandboxId}`,
      "HOME=/else",
      "PATH=/usr/local/bin:/usr/bin:/bin",
    ]);
    expect((await exec({ command: "echo [$HOME]", env: { HOME: null } })).stdout).toBe("[]\n");
  });

  test("only the three standard descriptors are passed on", async () => {
    const { stdout } = await exec({ command: ["ls", "/proc/self/fd"] });
    expect(stdout).toBe("0\n1\n2\n3\n"); // 3 is the directory that ls has open
  });
});

describe("bad input: a clear error, and nothing was started", () => {
  test.each([
    ["unknown cwd", { command: "true", cwd: "/no/such" }, "the working directory /no/such does not exist"],
    [
      "cwd is a file",
      { command: "true", cwd: "/etc/passwd" },
      "the working directory /etc/passwd is not a directory",
    ],
    ["relative cwd", { command: "true", cwd: "tmp" }, "cwd: must be an absolute path"],
    ["unknown program", { command: ["nosuch"] }, "the program nosuch was not found in PATH"],
    ["unknown path", { command: ["/no/such"] }, "the program /no/such does not exist"],
    ["not executable", { command: ["/etc/passwd"] }, "/etc/passwd is not executable"],
    [
      "too long",
      { command: ["ls", "x".repeat(200_000)] },
      "ls got more arguments and environment than the kernel takes",
    ],
    ["no command", {}, "command: Invalid input"],
    ["empty argv", { command: [] }, "command: "],
    ["a NUL in the command", { command: "echo a\0b" }, "command: "],
    ["a NUL in an argument", { command: ["echo", "a\0b"] }, "command.1: must not contain a NUL character"],
    ["a NUL in a value", { command: "true", env: { A: "\0" } }, "env.A: must not contain a NUL character"],
    ["env name A=B", { command: "true", env: { "A=B": "1" } }, "env.A=B: "],
    ["env name with a space", { command: "true", env: { "A B": "1" } }, "env.A B: "],
    ["an id that is a path", { command: "true", commandId: "../x" }, "commandId: 1 to 100 of letters"],
    ["an unknown option", { command: "true", timeout: 5 }, 'Unrecognized key: "timeout"'],
    ["a negative timeout", { command: "true", timeoutMs: -1 }, "timeoutMs: "],
  ])("%s", async (_, request, message) => {
    const { status, body } = await keeper.call("/v1/exec", request);
    expect([status, body.error.code, body.error.started]).toEqual([400, "invalid_argument", "no"]);
    expect(body.error.message).toContain(message);
  });

  test("no JSON", async () => {
    const response = await keeper.request("/v1/exec", { method: "POST", body: "{" });
    expect([response.status, (await response.json()).error.message]).toEqual([
      400,
      "the request's body is not JSON",
    ]);
  });

  test("a script whose interpreter is missing", async () => {
    const dir = join(keeper.dir, "scripts");
    mkdirSync(dir);
    writeFileSync(join(dir, "a"), "#!/no/such\n", { mode: 0o755 });
    const { body } = await keeper.call("/v1/exec", { command: ["./a"], cwd: dir });
    expect(body.error.message).toBe("./a needs an interpreter or loader that is not in this sandbox");
  });
});

test("unknown ids are not found", async () => {
  for (const path of ["/v1/commands/nope", "/v1/commands/nope/logs", "/v1/processes/nope"]) {
    expect((await keeper.call(path)).status).toBe(404);
  }
});

test("no descriptor is left behind", async () => {
  await exec({ command: "true" });
  const before = keeper.openFds();
  for (let i = 0; i < 20; i++)
    await exec({ command: "cat; sleep 0.001 & exit 1", stdin: "x".repeat(100_000) });
  await Bun.sleep(50); // the background children's pipes end with them
  expect(keeper.openFds()).toBeLessThanOrEqual(before);
});
