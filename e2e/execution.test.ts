import { afterAll, beforeAll, expect, test } from "bun:test";
import { request } from "node:http";
import { Sandbox } from "holdfast";
import { hostProcesses, run, TestServer } from "./harness.ts";

let server: TestServer;
let sandbox: Sandbox;
beforeAll(async () => {
  server = await TestServer.start();
  sandbox = await Sandbox.create({ network: "none" }, server.at);
});
afterAll(() => server.dispose());

test("nothing carries from one exec to the next", async () => {
  await sandbox.exec("cd /tmp; export A=1");
  expect((await sandbox.exec('echo "$PWD:$A"')).stdout).toBe("/workspace:\n");
});

test("200 parallel execs: 200 right answers", async () => {
  const answers = await Promise.all(Array.from({ length: 200 }, (_, i) => sandbox.exec(`echo ${i}`)));
  expect(answers.map(({ stdout }) => stdout)).toEqual(Array.from({ length: 200 }, (_, i) => `${i}\n`));
});

test("the same commandId from 20 callers runs once, and 20 get the same answer", async () => {
  const call = () =>
    sandbox.exec("echo x >> /workspace/once; wc -l < /workspace/once", { commandId: "once" });
  const answers = await Promise.all(Array.from({ length: 20 }, call));
  expect(new Set(answers.map((answer) => JSON.stringify(answer))).size).toBe(1);
  expect(answers[0]?.stdout).toBe("1\n");
  expect(sandbox.exec("echo other", { commandId: "once" })).rejects.toMatchObject({ code: "already_exists" });
});

test("a timeout ends what ignores SIGTERM, double-forks, calls setsid and closes its descriptors", async () => {
  const marker = 54_321 + Math.floor(Math.random() * 1_000);
  const stubborn = `trap '' TERM; (setsid sh -c "trap '' TERM; exec 0<&- 1>&- 2>&-; sleep ${marker} & sleep ${marker}" &) ; sleep ${marker}`;
  const before = performance.now();
  const result = await sandbox.exec(stubborn, { timeoutMs: 500 });
  expect(result).toMatchObject({ timedOut: true, exitCode: 124, kill: { survivors: [] } });
  expect(performance.now() - before).toBeLessThan(2_500);
  expect(await hostProcesses(`sleep ${marker}`)).toEqual([]);
});

test("the output of a command that times out is kept", async () => {
  expect(await sandbox.exec("echo before; sleep 100", { timeoutMs: 300 })).toMatchObject({
    stdout: "before\n",
    timedOut: true,
  });
});

test("a background child that holds stdout does not hold up the answer", async () => {
  const before = performance.now();
  expect((await sandbox.exec("sleep 1000 & echo x")).stdout).toBe("x\n");
  expect(performance.now() - before).toBeLessThan(1_000);
  await sandbox.exec("pkill sleep");
});

test("bytes are bytes", async () => {
  const { stdout } = await sandbox.exec("printf 'a\\0b\\377'", { encoding: "base64" });
  expect([...Buffer.from(stdout, "base64")]).toEqual([97, 0, 98, 255]);
});

test("arguments without a shell arrive as given", async () => {
  const argv = ["a b", "'", '"', "$HOME", "*", "", "line\nbreak", "é"];
  const { stdout } = await sandbox.exec(["printf", "%s\\0", ...argv]);
  expect(stdout).toBe(argv.map((arg) => `${arg}\0`).join(""));
});

test.each([
  ["an unknown program", ["no-such-program"], {}, "no-such-program was not found in PATH"],
  ["an unknown cwd", "true", { cwd: "/no/such/dir" }, "/no/such/dir does not exist"],
])("%s is an error that names it, and nothing was started", async (_, command, options, said) => {
  const failure = await sandbox.exec(command, options).catch((error) => error);
  expect(failure).toMatchObject({
    code: "invalid_argument",
    started: "no",
    message: expect.stringContaining(said),
  });
});

test("stdin of 5 MB arrives whole; without stdin it is empty", async () => {
  const input = "0123456789abcdef".repeat(327_680);
  const { stdout } = await sandbox.exec("sha256sum", { stdin: input });
  expect(stdout.split(" ")[0]).toBe(new Bun.CryptoHasher("sha256").update(input).digest("hex"));
  expect(await sandbox.exec("read x; echo $?")).toMatchObject({ stdout: "1\n" });
});

test.each([100, 1000])(
  "a fork bomb hits a limit of %d and leaves the sandbox usable, the same instance",
  async (pids) => {
    const small = await Sandbox.create({ network: "none", limits: { pids } }, server.at);
    await small.exec(":(){ :|:& };:; sleep 1", { timeoutMs: 3_000 });
    const after = await small.exec("echo alive", { timeoutMs: 20_000, ifGeneration: 1 });
    expect(after).toMatchObject({ stdout: "alive\n", generation: 1 });
    await small.delete();
  },
  120_000,
);

test("out of memory is told apart from a plain kill", async () => {
  const small = await Sandbox.create({ network: "none", limits: { memoryMiB: 128 } }, server.at);
  const { oomKilled } = await small.exec("head -c 1G /dev/zero | tail -c 1G | wc -c; exec tail /dev/zero");
  expect(oomKilled).toBe(true);
  expect(await small.exec("kill -9 $$")).toMatchObject({
    oomKilled: false,
    signal: "SIGKILL",
    exitCode: 137,
  });
  await small.delete();
});

test("300 commands that are waited for do not hold up another", async () => {
  await sandbox.exec("mkdir here; mkfifo gate");
  let finished = 0;
  const wait = async () => {
    const answer = await postExec({ command: "echo > here/$$; read go < gate" });
    finished++;
    return answer;
  };
  const waiting = Array.from({ length: 300 }, wait);
  const counted = async () => (await sandbox.exec("ls here | wc -l")).stdout.trim();
  while ((await counted()) !== "300") await Bun.sleep(20);
  expect(finished).toBe(0);
  const opener = await sandbox.startProcess("exec 3<> gate; yes '' | head -n 300 >&3; exec sleep infinity");
  for (const answer of await Promise.all(waiting)) expect(answer).toContain('"exitCode":0');
  await opener.kill();
});

/** By node's own client, which has no bound on requests at a time. */
function postExec(body: unknown): Promise<string> {
  const options = {
    method: "POST",
    headers: { Authorization: `Bearer ${server.token}`, "Content-Type": "application/json" },
    agent: false,
  } as const;
  return new Promise((resolve, reject) => {
    const sent = request(`${server.url}/v1/sandboxes/${sandbox.id}/exec`, options, (answer) => {
      let text = "";
      answer.on("data", (chunk) => {
        text += chunk;
      });
      answer.on("end", () => resolve(text));
    });
    sent.on("error", reject).end(JSON.stringify(body));
  });
}

test("the SDK works on Node, too", async () => {
  const built = `${server.dataDir}/sdk.mjs`;
  await run(
    ["bun", "build", "packages/sdk/src/index.ts", "--target=node", "--format=esm", `--outfile=${built}`],
    {
      env: { PATH: `${process.cwd()}/node_modules/.bin:${process.env.PATH}` },
    },
  );
  const program = `
    import { Sandbox } from ${JSON.stringify(built)};
    const sandbox = await Sandbox.create({ network: "none" });
    const { stdout } = await sandbox.exec("echo from node");
    const counter = await sandbox.startProcess("seq 3");
    let log = "";
    for await (const event of counter.logs({ follow: true })) if (event.bytes) log += new TextDecoder().decode(event.bytes);
    await sandbox.delete();
    console.log(JSON.stringify({ stdout, log, node: process.release.name }));`;
  const env = { HOLDFAST_URL: server.url, HOLDFAST_TOKEN: server.token };
  const { stdout, stderr } = await run(["node", "--input-type=module", "-e", program], { env });
  expect(stderr).toBe("");
  expect(JSON.parse(stdout)).toEqual({ stdout: "from node\n", log: "1\n2\n3\n", node: "node" });
});
