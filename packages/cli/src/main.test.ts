import { expect, test } from "bun:test";
import { closeSync, mkdirSync, openSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { launcher, setUpCli, text } from "./test-cli.ts";

const { home, environment, start, startWithPipe, holdfast, fake } = setUpCli();

test("create prints the id, ls a table, inspect the facts", async () => {
  const made = await holdfast([
    "create",
    "--name",
    "issue-42",
    "-e",
    "A=1",
    "--memory",
    "1g",
    "-l",
    "team=web",
  ]);
  expect(made).toEqual({ stdout: "sbx_01bcdefgh\n", stderr: "", code: 0 });
  expect(fake().sandboxes.get("sbx_01bcdefgh")?.spec).toEqual({
    env: { A: "1" },
    limits: { memoryMiB: 1024 },
  });
  expect((await holdfast(["ls"])).stdout).toBe(
    [
      "NAME      ID             STATE    GEN  PROVIDER  AGE  REAPED  NOTE",
      "issue-42  sbx_01bcdefgh  running  1    fake      0s   in 29m  team=web",
      "",
    ].join("\n"),
  );
  expect((await holdfast(["inspect", "sbx_01"])).stdout).toContain("generation:  1 (fresh)\n");
  expect(JSON.parse((await holdfast(["-o", "json", "inspect", "issue-42"])).stdout)).toMatchObject({
    name: "issue-42",
  });
  expect((await holdfast(["ls", "-q"])).stdout).toBe("sbx_01bcdefgh\n");
});

test("create says what a sandbox may be and see", async () => {
  const asked = [
    ...["--user", "node", "--read-only", "--runtime", "runsc", "--disk", "2g", "--tmpfs", "/cache=64m"],
    ...["--mount", "/srv/data:/data", "--mount", "/srv/out:/out:rw"],
  ];
  expect((await holdfast(["create", ...asked])).code).toBe(0);
  expect([...fake().sandboxes.values()].at(-1)?.spec).toEqual({
    ...{ user: "node", readOnly: true, runtime: "runsc", limits: { diskMiB: 2048 }, tmpfs: { "/cache": 64 } },
    mounts: [
      { source: "/srv/data", target: "/data" },
      { source: "/srv/out", target: "/out", writable: true },
    ],
  });
  const unclear = await holdfast(["create", "--mount", "/srv/data"]);
  expect(unclear).toMatchObject({ code: 2, stderr: expect.stringContaining("Write SOURCE:TARGET") });
});

test("exec passes streams and the exit code through", async () => {
  await holdfast(["create", "--name", "a"]);
  const ran = await holdfast(["exec", "a", "echo out; echo err >&2; exit 7"]);
  expect(ran).toEqual({ stdout: "out\n", stderr: "err\n", code: 7 });
  const argv = await holdfast(["exec", "a", "printf", "%s|", "a b", "$HOME", "-o", "--"]);
  expect(argv).toEqual({ stdout: "a b|$HOME|-o|--|", stderr: "", code: 0 });
  const own = await holdfast(["exec", "a", "-n", "--timeout", "5s", "printf", "%s|", "--", "-n"]);
  expect(own).toEqual({ stdout: "--|-n|", stderr: "", code: 0 });
  const json = await holdfast(["exec", "-o", "json", "a", "--", "echo", "hi"]);
  expect(JSON.parse(json.stdout)).toMatchObject({ exitCode: 0, stdout: "hi\n", generation: 1 });
});

test("piped stdin that ends at once goes with an exec", async () => {
  await holdfast(["create", "--name", "a"]);
  const file = join(home, "input");
  writeFileSync(file, "from a file");
  const fd = openSync(file, "r");
  const child = Bun.spawn([launcher, "exec", "a", "--", "cat"], {
    env: environment(),
    stdin: fd,
    stdout: "pipe",
  });
  expect(await text(child.stdout)).toBe("from a file");
  closeSync(fd);
  expect((await holdfast(["ps", "a"])).stdout).toBe("PROCESS  PID  STATUS  AGE  COMMAND\n");
});

test("endless stdin is streamed while the output comes back", async () => {
  await holdfast(["create", "--name", "a"]);
  const child = startWithPipe(["exec", "a", "--", "cat"]);
  const reader = child.stdout.getReader();
  for (const word of ["one", "two", "three"]) {
    await Bun.sleep(word === "one" ? 80 : 0); // longer than what counts as there at once
    child.stdin.write(word);
    await child.stdin.flush();
    expect(Buffer.from((await reader.read()).value ?? []).toString()).toBe(word);
  }
  await child.stdin.end();
  expect(await child.exited).toBe(0);
});

test("large stdin arrives byte for byte", async () => {
  await holdfast(["create", "--name", "a"]);
  const child = startWithPipe(["exec", "a", "--", "sha256sum"]);
  const input = crypto.getRandomValues(new Uint8Array(65_536)).buffer;
  const hash = new Bun.CryptoHasher("sha256");
  for (let i = 0; i < 80; i++) {
    hash.update(input);
    child.stdin.write(input);
  }
  await child.stdin.end();
  expect(await text(child.stdout)).toBe(`${hash.digest("hex")}  -\n`);
});

test("a stdin that nobody closes does not keep a finished command", async () => {
  await holdfast(["create", "--name", "a"]);
  const child = startWithPipe(["exec", "a", "--", "echo", "done"]);
  expect(await text(child.stdout)).toBe("done\n");
  expect(await child.exited).toBe(0);
});

test("Ctrl-C cancels the command and leaves with 130", async () => {
  await holdfast(["create", "--name", "a"]);
  const child = start(["exec", "a", "echo up; exec sleep 1000"]);
  await child.stdout.getReader().read();
  child.kill("SIGINT");
  expect(await child.exited).toBe(130);
  expect([...fake().runs.values()].map((run) => run.ending?.cancelled)).toEqual([true]);
});

test("a second Ctrl-C leaves at once, though the first one's cancel is not through", async () => {
  await holdfast(["create", "--name", "a"]);
  fake().faults.deafTo = "/cancel";
  const child = start(["exec", "a", "echo up; exec sleep 1000"]);
  await child.stdout.getReader().read();
  child.kill("SIGINT");
  await Bun.sleep(50); // two signals at once are one to the kernel
  child.kill("SIGINT");
  expect(await child.exited).toBe(130);
});

test("output that the log dropped is no success", async () => {
  await holdfast(["create", "--name", "a"]);
  const child = start(["exec", "a", "sleep 0.1; printf rest"]);
  while (fake().runs.size === 0) await Bun.sleep(1);
  const [run] = fake().runs.values();
  run?.events.push({ type: "truncated", from: 0, to: 7 });
  if (run !== undefined) run.nextOffset = 7;
  expect(await text(child.stdout)).toBe("rest");
  expect(await text(child.stderr)).toStartWith("holdfast: 7 bytes of output are missing");
  expect(await child.exited).toBe(125);
});

test("a reader that went away ends the command quietly", async () => {
  await holdfast(["create", "--name", "a"]);
  // Not `yes`: the fake keeps all of what is written, which are gigabytes before the command line has started.
  const pipeline = `"${launcher}" exec a -- 'while echo y; do sleep 0.01; done' | head -n 2`;
  const child = Bun.spawn(["sh", "-c", pipeline], {
    env: environment(),
    stdin: "ignore",
    stdout: "pipe",
    stderr: "pipe",
  });
  expect(await text(child.stdout)).toBe("y\ny\n");
  expect(await text(child.stderr)).toBe("");
  expect([...fake().runs.values()].map((run) => run.cancelled)).toEqual([true]);
});

test("run makes a sandbox, passes the exit code and deletes it", async () => {
  expect(await holdfast(["run", "--network", "none", "echo hi; exit 3"])).toEqual({
    stdout: "hi\n",
    stderr: "",
    code: 3,
  });
  expect(fake().sandboxes.size).toBe(0);
  const kept = await holdfast(["run", "--keep", "--name", "k", "true"]);
  expect(kept).toMatchObject({ code: 0, stderr: "holdfast: the sandbox is kept: k (sbx_01bcdefgh)\n" });
  expect(fake().sandboxes.size).toBe(1);
});

test("run deletes its sandbox after Ctrl-C as well", async () => {
  const child = start(["run", "echo up; exec sleep 1000"]);
  await child.stdout.getReader().read();
  child.kill("SIGINT");
  expect(await child.exited).toBe(130);
  expect(fake().sandboxes.size).toBe(0);
});

test("Ctrl-C while the sandbox is still being made leaves at once, and leaves nothing behind", async () => {
  fake().faults.deafTo = "/v1/sandboxes"; // the call that waits; the first says only which it is
  const child = start(["run", "--", "true"]);
  while (fake().sandboxes.size === 0) await Bun.sleep(1);
  child.kill("SIGINT");
  expect(await child.exited).toBe(130);
  expect(fake().sandboxes.size).toBe(0);
});

test("a detached process: id, ps, logs, kill", async () => {
  await holdfast(["create", "--name", "a"]);
  const id = (await holdfast(["exec", "-d", "a", "printf hello; exec sleep 1000"])).stdout.trim();
  expect(id).toStartWith("proc_");
  expect((await holdfast(["ps", "a"])).stdout).toContain("printf hello; exec sleep 1000\n");
  expect((await holdfast(["ps", "-q", "a"])).stdout).toBe(`${id}\n`);
  const following = start(["logs", "-f", "a", id]);
  expect(Buffer.from((await following.stdout.getReader().read()).value ?? []).toString()).toBe("hello");
  const mistyped = await holdfast(["kill", "a", `${id.slice(0, -1)}_`]);
  expect(mistyped).toMatchObject({ code: 1, stderr: expect.stringContaining(`hint: Did you mean "${id}"?`) });
  expect((await holdfast(["kill", "a", id.slice(0, -3)])).code).toBe(0);
  expect(await following.exited).toBe(0);
  const lines = (await holdfast(["logs", "-o", "json", "--since", "4", "a", id])).stdout.trim().split("\n");
  expect(JSON.parse(lines[0] ?? "")).toEqual({ type: "stdout", offset: 4, data: btoa("o") });
});

test("stop, start, events and rm; one failure does not keep the others", async () => {
  for (const name of ["a", "b"]) await holdfast(["create", "--name", name]);
  expect((await holdfast(["stop", "a"])).stdout).toBe("a\n");
  expect((await holdfast(["stop", "-q", "b"])).stdout).toBe("sbx_02cdefgh\n");
  expect((await holdfast(["start", "a", "-o", "json"])).stdout).toContain('"state": "running"');
  expect((await holdfast(["events", "a"])).stdout).toContain("created  -      by=test\n");
  const removed = await holdfast(["rm", "--wait", "10s", "a", "nope", "b"]);
  expect(removed).toMatchObject({ stdout: "a\nb\n", code: 1 });
  expect(removed.stderr).toContain('error: there is no sandbox "nope"\n');
  expect(fake().sandboxes.size).toBe(0);
  expect((await holdfast(["events", "a"])).stdout).toContain("created  -      by=test\n");
  expect((await holdfast(["inspect", "a"])).stderr).toContain("error: sandbox a was deleted\n");
});

test("start tells what takes its time", async () => {
  await holdfast(["create", "--name", "a"]);
  fake().faults.deafTo = "/start";
  const starting = start(["start", "a"]);
  const [lifecycle] = fake().lifecycles.values();
  // What was told before it began to listen is not its own.
  const detail = { image: "tools:1", layers: 2, layersDone: 1 };
  const telling = setInterval(() => lifecycle?.record("fetching", detail), 10);
  let told = "";
  for await (const chunk of starting.stderr) {
    told += new TextDecoder().decode(chunk);
    if (told.includes("\n")) break;
  }
  clearInterval(telling);
  starting.kill("SIGKILL");
  await starting.exited;
  expect(told).toStartWith("holdfast: fetching the image tools:1: 1 of 2 layers\n");
});

test("without a command: the help, as wide as it is everywhere, and 2", async () => {
  const { code, stdout, stderr } = await holdfast([]);
  expect([code, stdout]).toEqual([2, ""]);
  expect(stderr).toStartWith("Usage: holdfast ");
  expect(stderr.split("\n").filter((line) => line.length > 80)).toEqual([]);
});

const failures: [string, string[], { code: number; stderr: string }][] = [
  [
    "a mistyped command",
    ["lss"],
    { code: 2, stderr: "error: unknown command 'lss'\nhint: Did you mean ls?\n" },
  ],
  [
    "a mistyped option",
    ["ls", "--sate"],
    { code: 2, stderr: "error: unknown option '--sate'\nhint: Did you mean --state?\n" },
  ],
  [
    "an option that exec has not",
    ["exec", "issue-42", "--tiemout", "--", "x"],
    { code: 2, stderr: "error: unknown option '--tiemout'\nhint: Did you mean --timeout?\n" },
  ],
  [
    "exec without a command",
    ["exec", "issue-42", "--"],
    { code: 2, stderr: "error: missing required argument 'command'\n" },
  ],
  ["serve in the wrong place", ["-o", "table", "serve"], { code: 2, stderr: "error: `serve` comes first" }],
  ["a missing argument", ["exec"], { code: 2, stderr: "error: missing required argument 'sandbox'\n" }],
  [
    "a wrong value",
    ["run", "--timeout", "soon", "x"],
    {
      code: 2,
      stderr: "error: option '--timeout <time>' argument 'soon' is invalid\nhint: Give a time such as",
    },
  ],
  [
    "a contradiction",
    ["create", "--reuse"],
    { code: 2, stderr: "error: --reuse needs a --name\nhint: It says which" },
  ],
  [
    "a name that is taken",
    ["create", "--name", "issue-42"],
    { code: 1, stderr: "error: a sandbox named issue-42 exists already\nhint: Add --reuse" },
  ],
  [
    "a mistyped name",
    ["inspect", "isue-42"],
    { code: 1, stderr: 'error: there is no sandbox "isue-42"\nhint: Did you mean "issue-42"?\n' },
  ],
  [
    "a failure of exec",
    ["exec", "nope", "true"],
    { code: 125, stderr: 'error: there is no sandbox "nope"\nhint: `holdfast ls`' },
  ],
  [
    "a program that is not there",
    ["exec", "issue-42", "--", "no-such-program", "x"],
    { code: 125, stderr: "error: there is no program no-such-program\n" },
  ],
  [
    "an ambiguous id",
    ["stop", "sbx_0"],
    { code: 2, stderr: 'error: "sbx_0" is the beginning of 2 ids\nhint: Write more of it: sbx_01' },
  ],
  [
    "a token file that is not there",
    ["ls", "--token-file", "/nope"],
    { code: 2, stderr: "error: cannot read the token file" },
  ],
];

test.each(failures)("%s", async (_, args, expected) => {
  for (const name of ["issue-42", "other"]) {
    await holdfast(["create", "--name", name]);
  }
  const { stdout, stderr, code } = await holdfast(args);
  expect({ stdout, code }).toEqual({ stdout: "", code: expected.code });
  expect(stderr).toStartWith(expected.stderr);
  expect(stderr).not.toContain("    at ");
});

test("no server: what to do is said; a stack only when asked for", async () => {
  const env = { HOLDFAST_URL: "http://127.0.0.1:1" };
  expect(await holdfast(["ls"], env)).toEqual({
    stdout: "",
    stderr:
      "error: no Holdfast server answers at http://127.0.0.1:1\nhint: Start one with `npm start` (in a clone) or `holdfast serve`, or set HOLDFAST_URL to a server that runs.\n",
    code: 1,
  });
  expect((await holdfast(["ls"], { ...env, HOLDFAST_DEBUG: "1" })).stderr).toContain("at ");
});

test("a wrong token is told with where to find the right one", async () => {
  const { stderr } = await holdfast(["ls"], { HOLDFAST_TOKEN: "wrong" });
  expect(stderr).toContain("hint: Set HOLDFAST_TOKEN to the server's token");
});

test("the folder that one stands in does not configure us", async () => {
  writeFileSync(join(home, ".env"), "HOLDFAST_DEBUG=1\n");
  writeFileSync(join(home, "bunfig.toml"), 'preload = ["./evil.ts"]\n');
  writeFileSync(join(home, "evil.ts"), 'process.stdout.write("evil");\n');
  expect(await holdfast(["ls", "-q"])).toEqual({ stdout: "", stderr: "", code: 0 });
  expect((await holdfast(["inspect", "nope"])).stderr).not.toContain("at ");
});

test("it finds its clone through links to the file and to the folder, as npm makes them", async () => {
  const links = join(home, "links");
  mkdirSync(join(links, ".bin"), { recursive: true });
  symlinkSync(join(import.meta.dir, ".."), join(links, "cli"));
  symlinkSync("../cli/bin/holdfast", join(links, ".bin/holdfast"));
  for (const [cwd, file] of [
    [links, ".bin/holdfast"],
    [join(links, ".bin"), "./holdfast"],
    [home, join(links, "cli/bin/holdfast")],
  ] as const) {
    const child = Bun.spawn([file, "--version"], { cwd, env: environment(), stdout: "pipe" });
    expect(await text(child.stdout)).toBe("0.1.0\n");
  }
});

test("with -o json every failure is JSON on stderr, wherever the option stands", async () => {
  for (const [args, code, error] of [
    [["-o", "json", "lss"], 2, { code: "invalid_argument", hint: "Did you mean ls?" }],
    [["ls", "-o", "json", "--sate"], 2, { code: "invalid_argument", hint: "Did you mean --state?" }],
    [["create", "--reuse", "-o", "json"], 2, { code: "invalid_argument", message: "--reuse needs a --name" }],
    [["exec", "--output=json", "nope", "true"], 125, { code: "not_found" }],
    [["ls", "-o", "xml"], 2, undefined],
  ] as const) {
    const failed = await holdfast([...args]);
    expect({ stdout: failed.stdout, code: failed.code }).toEqual({ stdout: "", code });
    if (error === undefined) expect(failed.stderr).toStartWith("error: option '-o, --output <format>'");
    else expect(JSON.parse(failed.stderr)).toMatchObject({ error });
  }
});
