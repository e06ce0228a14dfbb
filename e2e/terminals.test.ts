import { afterAll, beforeAll, expect, test } from "bun:test";
import { Sandbox, type Terminal } from "holdfast";
import { TestServer } from "./harness.ts";

let server: TestServer;
let sandbox: Sandbox;

beforeAll(async () => {
  server = await TestServer.start();
  sandbox = await Sandbox.getOrCreate({ name: "terminals" }, server.at);
});

afterAll(() => server.dispose());

/** Reads until the text shows, and returns all that was read. */
async function reads(terminal: Terminal, pattern: RegExp): Promise<string> {
  const decoder = new TextDecoder();
  let text = "";
  for await (const event of terminal) {
    if (event.type === "output") text += decoder.decode(event.bytes, { stream: true });
    if (pattern.test(text)) return text;
  }
  throw new Error(`never came: ${pattern} in ${JSON.stringify(text.slice(-500))}`);
}

test("a terminal through the server: typing, size, exit", async () => {
  const terminal = await sandbox.terminal({ id: "one", cols: 100, rows: 30, env: { PS1: "$ " } });
  expect(terminal.created).toBe(true);
  await terminal.write("stty size; tty; echo $TERM; exit 7\r");
  await reads(terminal, /30 100\r\n\/dev\/pts\/\d+\r\nxterm-256color\r\n/);
  expect(await terminal.exited).toMatchObject({ exitCode: 7, cause: "program" });
});

test("it goes on through a kill of the server, from the next byte", async () => {
  const command = "for i in $(seq 1 400); do echo line $i; sleep 0.005; done; read x; echo got $x";
  const terminal = await sandbox.terminal({ id: "two", command });
  const changes: string[] = [];
  terminal.onConnection((change) => changes.push(change));
  await reads(terminal, /line 20\r\n/);
  const rest = reads(terminal, /line 400\r\n/);
  await server.restart("SIGKILL");
  const text = await rest;
  const numbers = [...text.matchAll(/line (\d+)\r\n/g)].map(([, n]) => Number(n));
  expect(numbers).toEqual(Array.from({ length: numbers.length }, (_, i) => 401 - numbers.length + i));
  expect(changes).toEqual(["lost", "back"]);
  await terminal.write("x\r");
  await reads(terminal, /got x/);
  expect(await terminal.exited).toMatchObject({ exitCode: 0 });
});

test("a flood is paced by its reader, and its screen is byte-exact", async () => {
  const terminal = await sandbox.terminal({ id: "three", command: "read x; seq 1 300000; read x" });
  await terminal.write("\r");
  let text = "";
  const decoder = new TextDecoder();
  for await (const event of terminal) {
    if (event.type === "output") text += decoder.decode(event.bytes);
    else throw new Error("lost some");
    if (text.endsWith("300000\r\n")) break;
  }
  const expected = `\r\n${Array.from({ length: 300_000 }, (_, i) => `${i + 1}\r\n`).join("")}`;
  expect(text === expected).toBe(true);
  const ended = await terminal.destroy();
  expect(ended).toMatchObject({ state: "exited", exit: { cause: "destroyed" }, kill: { survivors: [] } });
});

test("a hundred at once get one", async () => {
  const all = await Promise.all(
    Array.from({ length: 100 }, () => sandbox.terminal({ id: "hundred", command: ["sleep", "1000"] })),
  );
  expect(new Set(all.map(({ ptyId }) => ptyId)).size).toBe(1);
  expect((await sandbox.listTerminals()).filter(({ terminalId }) => terminalId === "hundred")).toMatchObject([
    { state: "running", viewers: 100, writers: 100 },
  ]);
  await Promise.all(all.map((terminal) => terminal.close()));
});
