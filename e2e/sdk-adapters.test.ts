import { afterAll, beforeAll, expect, setDefaultTimeout, test } from "bun:test";
import { Agent, type Model, type ModelRequest, Runner, Usage } from "@openai/agents";
import { generateText, stepCountIs } from "ai";
import { MockLanguageModelV4 } from "ai/test";
import { compute } from "computesdk";
import { Sandbox } from "holdfast";
import { sandboxTools as aiTools } from "holdfast/ai";
import { holdfast } from "holdfast/computesdk";
import { sandboxTools as agentTools } from "holdfast/openai-agents";
import { TestServer } from "./harness.ts";

// The libraries, the server and its sandboxes are real. The models are not: each reads its lines from a script.
setDefaultTimeout(60_000);

/** What the "model" calls, one step after the other; the last step is what it says. */
const SCRIPT = [
  ["sandbox_file_write", { path: "/workspace/app/add.sh", content: "echo $(($1 + $2))" }],
  ["sandbox_exec", { command: "sh app/add.sh 2 3", cwd: "/workspace" }],
  ["sandbox_exec", { command: "echo out; echo err >&2; exit 3" }],
  ["sandbox_file_read", { path: "/workspace/app/add.sh", start: 5 }],
  ["sandbox_file_read", { path: "/workspace/nothing" }],
  ["sandbox_file_list", { path: "/workspace/app" }],
  ["sandbox_process_start", { command: "echo ready; exec sleep 1000" }],
  ["sandbox_port", { port: 3000 }],
] as const;

/** What it is told, as far as it is the same each time. */
const ANSWERS = [
  { path: "/workspace/app/add.sh", sizeBytes: 17 },
  { exitCode: 0, stdout: "5\n", stderr: "", timedOut: false },
  { exitCode: 3, stdout: "out\n", stderr: "err\n" },
  { text: "$(($1 + $2))", sizeBytes: 17 },
  { error: { code: "not_found", hint: expect.any(String) } },
  { files: [{ path: "/workspace/app/add.sh", type: "file", sizeBytes: 17 }], truncated: false },
  { processId: expect.any(String), pid: expect.any(Number) },
  { url: expect.stringMatching(/^http:\/\/3000-/) },
];

let server: TestServer;
let sandbox: Sandbox;
beforeAll(async () => {
  server = await TestServer.start();
  sandbox = await Sandbox.create({ network: "none" }, server.at);
});
afterAll(() => server.dispose());

test("the Vercel AI SDK: a scripted model works in a sandbox through its tools", async () => {
  const model = new MockLanguageModelV4({
    doGenerate: async ({ prompt }) => {
      const step = prompt.filter(({ role }) => role === "tool").length;
      const [toolName, input] = SCRIPT[step] ?? [];
      const call = { type: "tool-call", toolCallId: `c${step}`, toolName: toolName ?? "" } as const;
      const content =
        input === undefined
          ? [{ type: "text" as const, text: "done" }]
          : [{ ...call, input: JSON.stringify(input) }];
      const unified = input === undefined ? ("stop" as const) : ("tool-calls" as const);
      return { content, finishReason: { unified, raw: undefined }, usage: NO_USAGE, warnings: [] };
    },
  });
  const { text, steps } = await generateText({
    model,
    tools: aiTools(async () => sandbox),
    stopWhen: stepCountIs(20),
    prompt: "add",
  });
  expect(text).toBe("done");
  expect(steps.flatMap(({ toolResults }) => toolResults.map(({ output }) => output))).toMatchObject(ANSWERS);
});

test("the OpenAI Agents SDK: a scripted model works in a sandbox through its tools", async () => {
  const told: unknown[] = [];
  const model: Model = {
    async getResponse({ input }: ModelRequest) {
      const results = (Array.isArray(input) ? input : []).filter(
        (item) => item.type === "function_call_result",
      );
      const last = results.at(-1)?.output;
      if (last !== undefined)
        told.push(JSON.parse(typeof last === "string" ? last : (last as { text: string }).text));
      const [name, args] = SCRIPT[results.length] ?? [];
      const said = { type: "output_text" as const, text: "done" };
      const output =
        name === undefined
          ? [
              {
                type: "message" as const,
                role: "assistant" as const,
                status: "completed" as const,
                content: [said],
              },
            ]
          : [
              {
                type: "function_call" as const,
                callId: `c${results.length}`,
                name,
                arguments: JSON.stringify(args),
              },
            ];
      return { usage: new Usage(), output };
    },
    getStreamedResponse: () => {
      throw new Error("not asked for");
    },
  };
  const agent = new Agent({ name: "coder", tools: agentTools(sandbox), model });
  const { finalOutput } = await new Runner({ tracingDisabled: true }).run(agent, "add", { maxTurns: 20 });
  expect(finalOutput).toBe("done");
  expect(told).toMatchObject(ANSWERS);
});

test("a tool call that is run again after a crash attaches to its first run, if that is asked for", async () => {
  const [{ execute } = {}] = [aiTools(sandbox, { attachByCallId: true }).sandbox_exec];
  const step = { toolCallId: "call_1", messages: [], context: {} };
  const again = () => execute?.({ command: "echo run >> /workspace/runs; wc -l < /workspace/runs" }, step);
  expect(await Promise.all([again(), again()])).toMatchObject([{ stdout: "1\n" }, { stdout: "1\n" }]);
  expect(await again()).toMatchObject({ stdout: "1\n" });
});

test("output is bounded for the model, and a process's log is read on from where it was", async () => {
  const tools = aiTools(sandbox, { maxOutputBytes: 10 });
  const call = (name: string, input: object) =>
    tools[name]?.execute?.(input, { toolCallId: "c", messages: [], context: {} });
  const cut = await call("sandbox_exec", { command: "seq 1000" });
  expect(cut).toMatchObject({ exitCode: 0, truncated: { stdoutBytes: expect.any(Number) } });
  const { processId } = await sandbox.startProcess("printf 0123456789abc");
  await (await sandbox.getProcess(processId)).wait();
  const first = await call("sandbox_process_logs", { processId });
  expect(first).toMatchObject({
    text: "0123456789",
    nextOffset: 10,
    status: { state: "exited", exitCode: 0 },
  });
  expect(await call("sandbox_process_logs", { processId, since: 10 })).toMatchObject({
    text: "abc",
    nextOffset: 13,
  });
});

test("computesdk: Holdfast is one of its providers", async () => {
  compute.setConfig({ provider: holdfast(server.at) });
  const made = await compute.sandbox.create({ envs: { A: "1" }, timeout: 60_000 });
  expect(await made.runCommand("echo $A; exit 3")).toMatchObject({ stdout: "1\n", exitCode: 3 });
  const pieces: string[] = [];
  const streamed = await made.runCommand("echo one; echo two", { onStdout: (text) => pieces.push(text) });
  expect([streamed.stdout, pieces.join("")]).toEqual(["one\ntwo\n", "one\ntwo\n"]);

  await made.filesystem.writeFile("/workspace/d/a.txt", "text");
  expect(await made.filesystem.readFile("/workspace/d/a.txt")).toBe("text");
  expect(await made.filesystem.readdir("/workspace/d")).toMatchObject([
    { name: "a.txt", type: "file", size: 4 },
  ]);
  await made.filesystem.remove("/workspace/d");
  expect(await made.filesystem.exists("/workspace/d")).toBe(false);

  expect(await made.getInfo()).toMatchObject({ provider: "holdfast", status: "running", timeout: 60_000 });
  expect(await made.getUrl({ port: 3000 })).toMatch(/^http:\/\/3000-/);
  const snapshot = await compute.snapshot.create(made.sandboxId, { name: "computed" });
  expect(await compute.snapshot.list()).toMatchObject([{ id: snapshot.id, metadata: { name: "computed" } }]);
  await compute.snapshot.delete(snapshot.id);
  expect((await compute.sandbox.getById(made.sandboxId))?.sandboxId).toBe(made.sandboxId);
  await made.destroy();
  expect(await Sandbox.get(made.sandboxId, server.at).catch(({ code }) => code)).toBe("gone");
});

const NO_USAGE = {
  inputTokens: { total: 0, noCache: 0, cacheRead: 0, cacheWrite: 0 },
  outputTokens: { total: 0, text: 0, reasoning: 0 },
};
