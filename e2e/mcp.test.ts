import { afterAll, afterEach, beforeAll, expect, test } from "bun:test";
import { renameSync } from "node:fs";
import { join } from "node:path";
import { HoldfastError, Sandbox } from "holdfast";
import { killKeeper, TestServer } from "./harness.ts";
import { Conversation, type Revision, type Transport } from "./mcp-conversation.ts";

let server: TestServer;
const open: Conversation[] = [];

beforeAll(async () => {
  server = await TestServer.start();
});
afterEach(async () => {
  for (const conversation of open.splice(0)) {
    await conversation.close();
    expect(conversation.heard).not.toContain(server.token);
  }
});
afterAll(async () => {
  expect(server.output).not.toContain(server.token);
  await server.dispose();
});

async function talk(by: Transport, revision: Revision = "2026-07-28"): Promise<Conversation> {
  const conversation = await Conversation.open(server, by, revision);
  open.push(conversation);
  return conversation;
}

const PAGE = `
const { readFileSync } = require("node:fs");
require("node:http")
  .createServer((request, response) => {
    console.log("visit to " + request.url);
    response.end(readFileSync("/workspace/app/page.txt"));
  })
  .listen(3000, "127.0.0.1", () => console.log("listening"));
`;

test.each<[Transport, Revision]>([
  ["stdio", "2025-11-25"],
  ["HTTP", "2026-07-28"],
])("a conversation over %s (%s), with a kill -9 of the server in the middle", async (by, revision) => {
  const agent = await talk(by, revision);
  const sandbox = `issue-${by.toLowerCase()}`;
  const made = { name: sandbox, network: "none", labels: { task: sandbox } };
  expect(await agent.facts("sandbox_create", made)).toMatchObject({
    created: true,
    sandbox: { name: sandbox, state: "running", generation: 1 },
  });
  expect(await agent.facts("sandbox_create", { name: sandbox })).toMatchObject({ created: false });

  await agent.facts("sandbox_file_write", { sandbox, path: "/workspace/app/server.cjs", content: PAGE });
  await agent.facts("sandbox_file_write", { sandbox, path: "/workspace/app/page.txt", content: "before\n" });
  const command = "node server.cjs";
  const dev = { sandbox, processId: "dev" };
  await agent.facts("sandbox_process_start", { ...dev, command, cwd: "/workspace/app" });
  expect(await agent.facts("sandbox_process_wait", { ...dev, port: 3000 })).toMatchObject({ met: true });
  expect(await agent.facts("sandbox_process_wait", { ...dev, text: "listening" })).toMatchObject({
    met: true,
  });
  const visit = async (path: string) => {
    const { ports } = await agent.facts("sandbox_port", { sandbox, port: 3000 });
    return (await fetch(ports[0].url + path)).text();
  };
  expect(await visit("one")).toBe("before\n");
  const logs = await agent.facts("sandbox_process_logs", dev);
  expect(logs).toMatchObject({ output: "listening\nvisit to /one\n", status: "running", hasMore: false });

  await agent.facts("sandbox_session_exec", {
    sandbox,
    command: "cd app; export MARK=here; greet() { echo hi $1; }",
  });
  const edit = { sandbox, path: "/workspace/app/page.txt", oldText: "before", newText: "after $& $1" };
  expect(await agent.facts("sandbox_file_edit", edit)).toMatchObject({ replacements: 1 });

  await server.restart("SIGKILL");

  const shell = await agent.facts("sandbox_session_exec", {
    sandbox,
    command: 'echo "$MARK $PWD"; greet you',
  });
  expect(shell).toMatchObject({ stdout: "here /workspace/app\nhi you\n", exitCode: 0, generation: 1 });
  expect(shell.notice).toBeUndefined();
  expect(await visit("two")).toBe("after $& $1\n");
  const { nextOffset: since } = logs;
  expect(await agent.facts("sandbox_process_logs", { ...dev, since, waitMs: 5000 })).toMatchObject({
    output: "visit to /two\n",
    firstOffset: since,
    status: "running",
  });
  expect(await agent.facts("sandbox_why", { sandbox })).toMatchObject({
    state: "running",
    processes: [{ processId: "dev", status: "running", command }],
    sessions: [{ sessionId: "main", cwd: "/workspace/app" }],
  });
  expect(
    (await agent.facts("sandbox_list", { label: `task=${sandbox}`, state: "running" })).sandboxes,
  ).toHaveLength(1);
  const taken = await agent.facts("sandbox_snapshot", { sandbox, name: `${sandbox}-done` });
  expect(taken.snapshots).toMatchObject([{ state: "ready", name: `${sandbox}-done` }]);
  expect(await agent.facts("sandbox_process_kill", dev)).toMatchObject({ status: "exited" });
  expect(await agent.facts("sandbox_delete", { sandbox })).toMatchObject({ deleted: true });
  expect(await agent.facts("sandbox_delete", { sandbox })).toMatchObject({ deleted: true });
  const late = await agent.call("sandbox_exec", { sandbox, command: "true" });
  expect(late).toMatchObject({
    isError: true,
    text: expect.stringContaining("hint: sandbox_create makes another"),
  });
  const { state, timeline } = await agent.facts("sandbox_why", { sandbox });
  expect({ state, last: timeline.at(-1).type }).toEqual({ state: "deleted", last: "deleted" });
});

test("clients of both revisions find the same tools on both transports", async () => {
  const pairs = [
    ["stdio", "2026-07-28"],
    ["HTTP", "2025-11-25"],
    ["HTTP", "2026-07-28"],
  ] as const;
  const lists = await Promise.all(
    pairs.map(async ([by, revision]) => {
      const { client } = await talk(by, revision);
      expect(client.getNegotiatedProtocolVersion()).toBe(revision);
      return (await client.listTools()).tools;
    }),
  );
  const [tools = [], ...others] = lists;
  for (const other of others) expect(other).toEqual(tools);
  expect(tools.map(({ name }) => name).sort()).toEqual(NAMES);
  for (const { name, annotations, outputSchema, description = "" } of tools) {
    expect({ name, hints: typeof annotations?.readOnlyHint, shape: outputSchema?.type }).toEqual({
      name,
      hints: "boolean",
      shape: "object",
    });
    expect(description.length).toBeGreaterThan(40);
  }
  const destructive = tools.filter(({ annotations }) => annotations?.destructiveHint).map(({ name }) => name);
  expect(destructive).toContain("sandbox_delete");
});

const NAMES = [
  "sandbox_create",
  "sandbox_delete",
  "sandbox_exec",
  "sandbox_file_edit",
  "sandbox_file_list",
  "sandbox_file_read",
  "sandbox_file_write",
  "sandbox_list",
  "sandbox_port",
  "sandbox_process_kill",
  "sandbox_process_logs",
  "sandbox_process_start",
  "sandbox_process_wait",
  "sandbox_process_write",
  "sandbox_session_exec",
  "sandbox_snapshot",
  "sandbox_why",
];

test("a server that is not there is told, and found once it is, with a token that was made meanwhile", async () => {
  const token = join(server.dataDir, "token");
  const over = await talk("HTTP");
  renameSync(token, `${token}.away`);
  await server.signal("SIGKILL");
  const agent = await talk("stdio");
  expect(await agent.call("sandbox_list", {})).toEqual({
    isError: true,
    facts: undefined,
    text: expect.stringMatching(
      /no Holdfast server answers[\s\S]*code: unavailable \(the same[\s\S]*hint: Start one with/,
    ),
  });
  await expect(over.call("sandbox_list", {})).rejects.toThrow();
  renameSync(`${token}.away`, token);
  await server.boot();
  expect(await agent.facts("sandbox_list", {})).toHaveProperty("sandboxes");
  expect(await over.facts("sandbox_list", {})).toHaveProperty("sandboxes");
});

test("what a new instance means is told, and what to do about it", async () => {
  const agent = await talk("HTTP");
  const sandbox = "anew";
  const held = await Sandbox.create({ name: sandbox, network: "none" }, server.at);
  const dev = { sandbox, processId: "dev" };
  await agent.facts("sandbox_process_start", { ...dev, command: "sleep 1000" });
  await killKeeper(held);
  const looked = await agent.call("sandbox_process_logs", dev);
  expect(looked).toMatchObject({ isError: true, text: expect.stringContaining("any sandbox_exec does") });

  const woken = await agent.call("sandbox_exec", { sandbox, command: "echo back" });
  expect(woken.facts).toMatchObject({ stdout: "back\n", generation: 2 });
  expect(woken.text).toMatch(
    /^notice: the sandbox was started anew: .* Same disk\. Processes from before are gone/,
  );
  const lost = await agent.call("sandbox_process_logs", dev);
  expect(lost.facts).toMatchObject({ status: "lost" });
  expect(lost.text).toContain("Start it again with sandbox_process_start");
  // Woken by somebody else meanwhile: who says what it knew is told all the same.
  const remembered = await agent.facts("sandbox_file_list", { sandbox, generation: 1 });
  expect(remembered.notice).toContain("you knew 1");
  expect((await agent.facts("sandbox_file_list", { sandbox, generation: 2 })).notice).toBeUndefined();
});

test("hostile output is bounded, valid and harmless; the log has every byte of it", async () => {
  const agent = await talk("stdio");
  const sandbox = "hostile";
  await agent.facts("sandbox_create", { name: sandbox, network: "none" });
  const bytes = "\\033]0;title\\007\\033[31mred\\033[0m \\000\\377\\376 a\\rb \\342\\200\\256rtl";
  const odd = await agent.facts("sandbox_exec", { sandbox, command: `printf '${bytes}'` });
  expect(odd.stdout).toBe("red \ufffd\ufffd a\nb rtl");
  const { commandId } = odd;
  const exact = await agent.facts("sandbox_process_logs", {
    sandbox,
    commandId,
    since: 0,
    encoding: "base64",
  });
  expect(Buffer.from(exact.output, "base64").subarray(0, 4).toString("latin1")).toBe("\u001b]0;");

  const long = await agent.call("sandbox_exec", {
    sandbox,
    command: "yes é | head -c 3000000 | tr -d '\\n'; echo end",
  });
  expect(long.facts.stdout.length).toBeLessThan(17_000);
  expect(long.facts.stdout).toMatch(/^é+\n\[… \d+ bytes are left out here …\]\né+end\n$/);
  const shown = Buffer.byteLength(long.facts.stdout.replace(/\n\[….*…\]\n/, ""));
  expect(shown + long.facts.omittedBytes).toBe(2_000_004);
  const { nextOffset: since } = long.facts;
  expect(since).toBeLessThanOrEqual(Buffer.byteLength(long.facts.stdout.split("\n", 1)[0]));
  const rest = await agent.facts("sandbox_process_logs", { sandbox, commandId: long.facts.commandId, since });
  expect(rest).toMatchObject({ hasMore: true, firstOffset: since, output: expect.stringMatching(/^é+$/) });

  await agent.facts("sandbox_exec", {
    sandbox,
    command: "printf '\\377\\000' > bin; printf 'ab€cd€' > text",
  });
  expect(await agent.facts("sandbox_file_read", { sandbox, path: "/workspace/bin" })).toMatchObject({
    content: "/wA=",
    encoding: "base64",
  });
});

test.each<[Transport, Revision]>([
  ["stdio", "2025-11-25"],
  ["stdio", "2026-07-28"],
  ["HTTP", "2026-07-28"],
])("a cancel over %s (%s) ends the command with everything it started", async (by, revision) => {
  const agent = await talk(by, revision);
  const held = await Sandbox.getOrCreate({ name: "cancel", network: "none" }, server.at);
  const commandId = `sleeps-${by}-${revision}`;
  const cancel = new AbortController();
  const args = { sandbox: "cancel", commandId, command: "sleep 1000 & echo up; wait" };
  const call = agent.call("sandbox_exec", args, { signal: cancel.signal });
  call.catch(() => undefined);
  await hasBegun(held, commandId);
  cancel.abort();
  await expect(call).rejects.toThrow();
  for await (const event of held.commandLogs(commandId, { follow: true })) {
    if (event.type === "exit")
      expect(event).toMatchObject({ cancelled: true, kill: { killed: 2, survivors: [] } });
  }
});

test("a client that goes away on stdio has cancelled nothing", async () => {
  const agent = await talk("stdio");
  const held = await Sandbox.getOrCreate({ name: "left", network: "none" }, server.at);
  const command = "echo up; until [ -e go ]; do sleep 0.05; done; echo done";
  agent.call("sandbox_exec", { sandbox: "left", commandId: "long", command }).catch(() => undefined);
  await hasBegun(held, "long");
  await agent.close();
  await held.files.write("/workspace/go", "");
  for await (const event of held.commandLogs("long", { follow: true })) {
    if (event.type === "exit") expect(event).toMatchObject({ exitCode: 0, cancelled: false });
  }
  const other = await talk("stdio");
  expect(await other.facts("sandbox_process_logs", { sandbox: "left", commandId: "long" })).toMatchObject({
    status: "exited",
    exitCode: 0,
    output: "up\ndone\n",
  });
});

/** Resolves when the command has written its first line. It may not be known yet. */
async function hasBegun(sandbox: Sandbox, commandId: string): Promise<void> {
  for (;;) {
    try {
      for await (const event of sandbox.commandLogs(commandId, { follow: true }))
        if (event.type === "stdout") return;
    } catch (error) {
      if (!(error instanceof HoldfastError) || error.code !== "not_found") throw error;
      await Bun.sleep(20);
    }
  }
}

test("a command that takes longer than one waits goes on, and is followed to its end", async () => {
  const agent = await talk("HTTP", "2025-11-25");
  const sandbox = "long";
  await agent.facts("sandbox_create", { name: sandbox, network: "none" });
  const command = "echo one; until [ -e go ]; do sleep 0.05; done; echo two >&2; exit 3";
  const first = await agent.call("sandbox_exec", { sandbox, command, yieldMs: 300 });
  expect(first.facts).toMatchObject({ status: "running", stdout: "one\n", nextOffset: 4 });
  expect(first.text).toContain("--- it goes on; what it writes and how it ends: sandbox_process_logs");
  await agent.facts("sandbox_file_write", { sandbox, path: "/workspace/go", content: "" });
  const { commandId, nextOffset: since } = first.facts;
  const rest = await agent.facts("sandbox_process_logs", { sandbox, commandId, since, waitMs: 20_000 });
  expect(rest.output).toBe("two\n");

  const talker = { sandbox, processId: "talker" };
  await agent.facts("sandbox_process_start", {
    ...talker,
    command: "while read line; do echo got $line; done",
  });
  const { nextOffset } = await agent.facts("sandbox_process_write", { ...talker, text: "hello\n" });
  const reply = { ...talker, since: nextOffset, waitMs: 20_000 };
  expect(await agent.facts("sandbox_process_logs", reply)).toMatchObject({ output: "got hello\n" });
  await agent.facts("sandbox_process_write", { ...talker, closeStdin: true });
  expect(await agent.facts("sandbox_process_wait", talker)).toMatchObject({ met: true, status: "exited" });
  const never = { ...talker, port: 4000, timeoutMs: 10_000 };
  expect(await agent.facts("sandbox_process_wait", never)).toMatchObject({
    met: false,
    logEnd: "got hello\n",
  });
});

const sandbox = "bad-inputs";
const bad: [tool: string, args: Record<string, unknown>, told: RegExp][] = [
  ["sandbox_create", { name: "Not A Name" }, /name: 1 to 63 of a-z/],
  [
    "sandbox_create",
    { name: sandbox, network: "full" },
    /code: spec_conflict[\s\S]*hint: leave out what differs/,
  ],
  ["sandbox_create", { fromSnapshot: "nope" }, /code: not_found/],
  ["sandbox_list", { limit: 0 }, /limit: /],
  ["sandbox_list", { cursor: "x" }, /code: invalid_argument/],
  ["sandbox_why", { sandbox: "nope" }, /hint: sandbox_list shows which there are/],
  ["sandbox_exec", { sandbox, command: "true", cwd: "relative" }, /cwd: must be an absolute path/],
  ["sandbox_exec", { sandbox, command: "true", cwd: "/nowhere" }, /code: invalid_argument/],
  ["sandbox_exec", { sandbox, command: "a\0b" }, /NUL/],
  ["sandbox_exec", { sandbox, command: "true", commandId: "../x" }, /commandId: 1 to 100/],
  ["sandbox_exec", { sandbox, comand: "true" }, /command: [\s\S]*comand/],
  ["sandbox_session_exec", { sandbox, command: "" }, /command: /],
  ["sandbox_session_exec", { sandbox, command: "true", sessionId: "a/b" }, /sessionId: /],
  ["sandbox_process_start", { sandbox, command: "x", keepsAwake: "often" }, /keepsAwake: /],
  ["sandbox_process_wait", { sandbox, processId: "nope" }, /code: not_found/],
  [
    "sandbox_process_wait",
    { sandbox, processId: "here", port: 1, text: "x" },
    /wait for a port or for a text/,
  ],
  ["sandbox_process_logs", { sandbox }, /give a processId or a commandId[\s\S]*hint: sandbox_why lists/],
  ["sandbox_process_logs", { sandbox, commandId: "nope" }, /code: not_found/],
  ["sandbox_process_write", { sandbox, processId: "here", text: 5 }, /text: /],
  ["sandbox_process_kill", { sandbox, processId: "a", commandId: "b" }, /one of them/],
  ["sandbox_file_read", { sandbox, path: "/workspace/nope" }, /code: not_found/],
  ["sandbox_file_read", { sandbox, path: "/workspace" }, /code: wrong_state/],
  ["sandbox_file_write", { sandbox, path: "/x", content: "%", encoding: "base64" }, /content: is not base64/],
  [
    "sandbox_file_write",
    { sandbox, path: "/workspace/a", content: "", ifAbsent: true },
    /precondition_failed/,
  ],
  [
    "sandbox_file_edit",
    { sandbox, path: "/workspace/a", oldText: "z", newText: "" },
    /does not have oldText/,
  ],
  ["sandbox_file_edit", { sandbox, path: "/workspace/a", oldText: "x", newText: "" }, /has oldText 2 times/],
  ["sandbox_file_list", { sandbox, path: "/workspace/a" }, /code: wrong_state/],
  ["sandbox_port", { sandbox, port: 70_000 }, /port: /],
  ["sandbox_port", { sandbox, action: "close" }, /close needs a port/],
  ["sandbox_snapshot", { sandbox, name: "No Name" }, /name: /],
  ["sandbox_delete", { sandbox: "nope" }, /code: not_found/],
];

test.each<Transport>(["stdio", "HTTP"])(
  "what is wrong with a call over %s is said, and nothing was done",
  async (by) => {
    const agent = await talk(by);
    const { facts } = await agent.call("sandbox_create", { name: sandbox, network: "none" });
    await agent.facts("sandbox_file_write", { sandbox, path: "/workspace/a", content: "x x" });
    const told = await Promise.all(bad.map(([tool, args]) => agent.call(tool, args)));
    for (const [i, { isError, text }] of told.entries()) {
      expect({ call: bad[i], isError, text }).toMatchObject({ isError: true });
      expect(text).toMatch(bad[i]?.[2] ?? /^$/);
      expect(text).not.toMatch(/\n {4}at |node_modules/);
    }
    expect(new Set(bad.map(([tool]) => tool)).size).toBe(NAMES.length);
    expect(facts.sandbox.generation).toBe(1);
    expect(await agent.facts("sandbox_file_read", { sandbox, path: "/workspace/a" })).toMatchObject({
      content: "x x",
    });
  },
);
