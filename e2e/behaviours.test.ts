// The numbered behaviours of the execution design that no other file here proves, each through the SDK against a
// running server. The rest: execution.test.ts has 1-3, 6-9 and 16-18, flow.test.ts 5, survival.test.ts 11,
// sessions.test.ts 12 and 24, terminals.test.ts 27, screens.test.ts 28; 22 and 30 are the keeper's own (engine/tree.test.ts) and
// `npm test`'s last step.
import { afterAll, beforeAll, expect, test } from "bun:test";
import { readdirSync } from "node:fs";
import { type Process, Sandbox, type Terminal } from "holdfast";
import { TestServer } from "./harness.ts";

let server: TestServer;
let sandbox: Sandbox;
beforeAll(async () => {
  server = await TestServer.start();
  sandbox = await Sandbox.create({ network: "none" }, server.at);
});
afterAll(() => server.dispose());

test("4: of 100 MB of output the answer has a bounded part, and counts the rest exactly", async () => {
  const result = await sandbox.exec("head -c 100000000 /dev/zero; head -c 5000000 /dev/zero >&2", {
    maxOutputBytes: 1_000_000,
  });
  expect([result.stdout.length, result.stderr.length]).toEqual([1_000_000, 1_000_000]);
  expect(result.truncated).toEqual({ stdoutBytes: 99_000_000, stderrBytes: 4_000_000 });
});

test("10: a client that leaves in mid-stream and comes back with its offset has every byte once", async () => {
  const process = await sandbox.startProcess("for i in $(seq 500); do echo $i; sleep 0.002; done");
  let text = "";
  for (let done = false; !done; ) {
    let seen = 0;
    done = true;
    for await (const event of process.logs({ since: text.length, follow: true })) {
      if ("bytes" in event) text += new TextDecoder().decode(event.bytes);
      if (++seen === 20 && event.type !== "exit") {
        done = false;
        break;
      }
    }
  }
  expect(text).toBe(Array.from({ length: 500 }, (_, i) => `${i + 1}\n`).join(""));
});

test("13: exit codes 0 to 255, and deaths by signal", async () => {
  const codes = Array.from({ length: 256 }, (_, code) => code);
  const results = await Promise.all(codes.map((code) => sandbox.exec(["bash", "-c", `exit ${code}`])));
  expect(results.map(({ exitCode, signal }) => [exitCode, signal])).toEqual(
    codes.map((code) => [code, null]),
  );
  for (const [signal, number] of [
    ["SIGTERM", 15],
    ["SIGKILL", 9],
    ["SIGSEGV", 11],
    ["SIGHUP", 1],
  ] as const) {
    expect(await sandbox.exec(`kill -${number} $$`)).toMatchObject({ signal, exitCode: 128 + number });
  }
});

test("14: characters of three bytes, written a byte at a time, arrive whole", async () => {
  const { stdout } = await sandbox.exec(
    "for b in '\\xe2' '\\x82' '\\xac' '\\xe6' '\\x97' '\\xa5'; do printf $b; sleep 0.01; done",
  );
  expect(stdout).toBe("€日");
  const cut = await sandbox.exec("printf '€€€'", { maxOutputBytes: 4 });
  expect([cut.stdout, cut.truncated.stdoutBytes]).toEqual(["€", 6]);
});

test("15: 50 MB of stdin through sha256sum", async () => {
  const chunk = crypto.getRandomValues(new Uint8Array(65_536));
  const hash = new Bun.CryptoHasher("sha256");
  const process = await sandbox.startProcess("sha256sum");
  const input = new Uint8Array(50_000_000).map((_, i) => chunk[i % 65_536] ?? 0);
  for (let at = 0; at < input.length; at += 5_000_000)
    await process.write(input.subarray(at, at + 5_000_000));
  await process.closeStdin();
  expect((await textOf(process)).split(" ")[0]).toBe(hash.update(input).digest("hex"));
});

test.each([["A=B"], ["A B"], ["1A"], [""], ["A\0B"]])(
  "19: the environment name %j is refused, and nothing is started",
  async (name) => {
    expect(await sandbox.exec("true", { env: { [name]: "x" } }).catch((error) => error)).toMatchObject({
      code: "invalid_argument",
      started: "no",
    });
  },
);

test("19: a NUL anywhere is refused", async () => {
  const attempts = [
    sandbox.exec("echo a\0b"),
    sandbox.exec(["echo", "a\0b"]),
    sandbox.exec("true", { env: { A: "a\0b" } }),
    sandbox.exec("true", { cwd: "/tmp\0" }),
  ];
  for (const attempt of attempts)
    expect(await attempt.catch((error) => error)).toMatchObject({ code: "invalid_argument", started: "no" });
});

test("20: waitForPort does not take somebody else's port for ours", async () => {
  const serve = (port: number) => ["python3", "-m", "http.server", "--bind", "127.0.0.1", String(port)];
  const other = await sandbox.startProcess(serve(3000));
  await other.waitForPort(3000, { timeoutMs: 20_000 });
  const ours = await sandbox.startProcess("sleep 1000");
  const waited = await ours.waitForPort(3000, { timeoutMs: 500 }).catch((error) => error);
  expect(waited).toBeInstanceOf(Error);
  await Promise.all([other.kill(), ours.kill()]);
});

test("21: a finished command is known until its retention, then 410, and is never run again", async () => {
  const count = "echo x >> /workspace/count; wc -l < /workspace/count";
  expect(await sandbox.exec(count, { commandId: "early" })).toMatchObject({ stdout: "1\n" });
  for (let sent = 0; sent < 2_100; sent += 100)
    await Promise.all(Array.from({ length: 100 }, () => sandbox.exec(["true"])));
  for (const again of [sandbox.exec(count, { commandId: "early" }), sandbox.getCommand("early")]) {
    expect(await again.catch((error) => error)).toMatchObject({ code: "record_expired" });
  }
  expect((await sandbox.exec("wc -l < /workspace/count")).stdout).toBe("1\n");
});

test("23: two writers to one stdin keep their chunks whole", async () => {
  const process = await sandbox.startProcess("cat");
  const line = (letter: string) => `${letter.repeat(9_999)}\n`;
  await Promise.all(Array.from({ length: 40 }, (_, i) => process.write(line(i % 2 === 0 ? "a" : "b"))));
  await process.closeStdin();
  const lines = (await textOf(process)).trimEnd().split("\n");
  expect(lines.filter((text) => text === "a".repeat(9_999))).toHaveLength(20);
  expect(lines.filter((text) => text === "b".repeat(9_999))).toHaveLength(20);
});

test.each([
  ["set -e; false", 1],
  ["exec bash", 0],
  ["trap 'echo trapped' EXIT USR1", 0],
  ["exec >/tmp/elsewhere", 0],
  ["stty -echo", 1],
  ["ulimit -n 64", 0],
])("25: a session goes on after `%s`", async (text, exitCode) => {
  const session = await sandbox.createSession();
  await session.exec("A=kept");
  expect((await session.exec(text)).exitCode).toBe(exitCode);
  expect(await session.exec("echo $A")).toMatchObject({ stdout: "kept\n", exitCode: 0 });
  await session.delete();
});

test("26: a thousand session commands leave no descriptor, file or memory behind", async () => {
  const session = await sandbox.createSession();
  const look = () =>
    sandbox.exec(
      "sleep 0.5; ls /proc/[0-9]*/fd 2>/dev/null | wc -l; find /.holdfast/state /tmp | wc -l; ps ax | wc -l",
    );
  const run = async (commands: number) => {
    for (let i = 0; i < commands; i++)
      await session.exec(`N=${i}`, { commandId: `s${commands}-${i % 2}-${i}` });
  };
  await run(200);
  const before = (await look()).stdout.trim().split("\n").map(Number);
  await run(800);
  const after = (await look()).stdout.trim().split("\n").map(Number);
  // A savepoint that is just being written down, with its descriptors, may be there or not; a leak would be hundreds.
  for (const [i, value] of after.entries()) expect([i, value - (before[i] ?? 0) < 40]).toEqual([i, true]);
  expect((await session.exec("echo $N")).stdout).toBe("799\n");
});

test("29: of two viewers one resizes, both are told, and the program sees it", async () => {
  const first = await sandbox.terminal({
    id: "pair",
    command: "trap 'stty size' WINCH; while :; do sleep 0.05; done",
    cols: 80,
    rows: 24,
  });
  const second = await sandbox.attachTerminal("pair");
  const told = new Promise<string>((resolve) =>
    second.onResize(({ cols, rows }) => resolve(`${cols}x${rows}`)),
  );
  await first.resize(101, 33);
  expect(await told).toBe("101x33");
  await shows(second, /33 101/);
  await first.destroy();
});

test("30: deleting the sandbox leaves nothing of it in the data dir", async () => {
  const one = await Sandbox.create({ network: "none" }, server.at);
  await one.exec("echo x > ~/f; mkfifo /tmp/p; ln -s / /workspace/root");
  await one.delete();
  const left = ["sandboxes", "instances"].flatMap((folder) => readdirSync(`${server.dataDir}/${folder}`));
  expect(left.filter((name) => name.includes(one.id))).toEqual([]);
});

async function textOf(process: Process): Promise<string> {
  let text = "";
  for await (const event of process.logs({ follow: true }))
    if (event.type === "stdout") text += new TextDecoder().decode(event.bytes);
  return text;
}

async function shows(terminal: Terminal, pattern: RegExp): Promise<void> {
  let text = "";
  for await (const event of terminal) {
    if (event.type === "output") text += new TextDecoder().decode(event.bytes);
    if (pattern.test(text)) return;
  }
  throw new Error(`never came: ${pattern} in ${text}`);
}
