import { expect, test } from "bun:test";
import { mkdirSync, symlinkSync } from "node:fs";
import { join } from "node:path";
import { Client, Sandbox } from "holdfast";
import { FakeServer } from "holdfast/testing";
import { candidates } from "./candidates.ts";
import { launcher, setUpCli } from "./test-cli.ts";

const { home, environment, holdfast } = setUpCli();

const fake = new FakeServer();
const client = await Client.connect({
  url: "http://fake",
  token: fake.token,
  fetch: fake.fetch,
  patienceMs: 0,
});
await Sandbox.create({ name: "issue-42" }, { client });
await Sandbox.create({ name: "web" }, { client });

async function completed(line: string, patience = AbortSignal.timeout(5000)): Promise<string[]> {
  return (await candidates(line.split(" "), { client, signal: patience })).map(({ word }) => word);
}

test.each([
  ["st", ["start", "stop"]],
  ["-o j", ["json"]],
  ["ls --st", ["--state"]],
  ["ls --state p", ["paused"]],
  ["stop ", ["issue-42", "web"]],
  ["stop web is", ["issue-42"]],
  ["stop sbx_02", ["sbx_02cdefgh"]],
  ["exec -d w", ["web"]],
  ["exec web ", []],
  ["exec web -- l", []],
  ["turn b", ["begin"]],
  ["turn begin w", ["web"]],
  ["cp w", ["web:"]],
  ["create --on-idle ", ["stop", "remove", "keep"]],
  ["create --name ", []],
  ["--url http://x why w", ["web"]],
  ["completion ", ["bash", "zsh", "fish"]],
  ["no-such-verb ", []],
])("%p is completed with %j", async (line, expected) => {
  expect(await completed(line)).toEqual(expected);
});

test("a server that is away, or has not the time, leaves its names out and nothing else", async () => {
  fake.faults.refuse = 1;
  expect(await completed("stop ")).toEqual([]);
  expect(await completed("stop ", AbortSignal.abort())).toEqual([]);
  expect(await completed("sto")).toEqual(["stop"]);
});

const asked = {
  bash: `source <(holdfast completion bash); COMP_WORDS=(holdfast stop issue); COMP_CWORD=2; _holdfast; echo "\${COMPREPLY[@]}"`,
  zsh: `compdef() { :; }; compadd() { shift; print -r -- "$@"; }; _files() { echo files; }
    source <(holdfast completion zsh); words=(holdfast stop issue); CURRENT=3; _holdfast`,
  fish: `holdfast completion fish | source; complete -C "holdfast stop issue" | string split -f1 \\t`,
};

for (const [shell, script] of Object.entries(asked)) {
  test.if(Bun.which(shell) !== null)(`${shell} completes a sandbox's name`, async () => {
    await holdfast(["create", "--name", "issue-42"]);
    await holdfast(["create", "--name", "web"]);
    const bin = join(home, "bin");
    mkdirSync(bin, { recursive: true });
    if (Bun.which("holdfast", { PATH: bin }) === null) symlinkSync(launcher, join(bin, "holdfast"));
    const env = { ...environment(), PATH: `${bin}:${process.env.PATH}` };
    const ran = Bun.spawn([shell, "-c", script], { env, stdin: "ignore", stdout: "pipe", stderr: "inherit" });
    expect(await new Response(ran.stdout).text()).toBe("issue-42\n");
  });
}
