import { expect, setDefaultTimeout, test } from "bun:test";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { startTestKeeper } from "../test-keeper.ts";
import { inProcessKeeper } from "./test-keeper-here.ts";

// A second each on a machine that does nothing else.
setDefaultTimeout(120_000);

test("quiesced, it takes no work, shows everything, ends what is to be ended, and goes on when resumed", async () => {
  await using keeper = await startTestKeeper();
  await keeper.call("/v1/sessions", { sessionId: "s" });
  await keeper.call("/v1/terminals", { id: "t", command: ["sleep", "100"] });
  await keeper.call("/v1/processes", { command: "cat", processId: "p" });
  expect((await keeper.call("/v1/quiesce", { lifetimeMs: 0 })).body).toEqual({ state: "quiesced" });

  const work: [string, unknown][] = [
    ["/v1/exec", { command: "true" }],
    ["/v1/processes", { command: "true" }],
    ["/v1/processes/p/stdin", "x"],
    ["/v1/processes/p/stdin/close", {}],
    ["/v1/processes/p/signal", { signal: "SIGUSR1" }],
    ["/v1/sessions", { sessionId: "other" }],
    ["/v1/sessions/s/exec", { command: "true" }],
    ["/v1/sessions/s/processes", { command: "true" }],
    ["/v1/terminals", { id: "other" }],
    ["/v1/terminals/t/resize", { cols: 10, rows: 10 }],
    ["/v1/touch", {}],
  ];
  for (const [path, body] of work) {
    const { status, body: answer } = await keeper.call(path, body);
    expect([path, status, answer.error]).toEqual([
      path,
      409,
      expect.objectContaining({ code: "quiesced", retryable: true, started: "no" }),
    ]);
  }
  const attach = await keeper.request("/v1/terminals/t/connect");
  expect([attach.status, (await attach.json()).error.code]).toEqual([409, "quiesced"]);

  for (const path of [
    "keeper",
    "activity",
    "processes",
    "processes/p",
    "processes/p/logs",
    "sessions",
    "terminals",
  ])
    expect([path, (await keeper.request(`/v1/${path}`)).status]).toEqual([path, 200]);
  expect((await keeper.call("/v1/processes/p")).body.status).toEqual({ state: "running" });
  expect((await keeper.call("/v1/processes/p/kill", {})).body.status).toMatchObject({ state: "exited" });
  expect((await keeper.request("/v1/sessions/s", { method: "DELETE" })).status).toBe(204);

  expect((await keeper.call("/v1/resume", {})).status).toBe(204);
  expect((await keeper.call("/v1/resume", {})).status).toBe(204);
  expect((await keeper.call("/v1/exec", { command: "echo on" })).body.stdout).toBe("on\n");
});

test("it lapses after ten seconds, unless it is said again", async () => {
  await using keeper = await inProcessKeeper();
  const quiesce = () => keeper.call("/v1/quiesce", { lifetimeMs: 0 });
  const run = async () => (await keeper.call("/v1/exec", { command: ["true"] })).status;
  await quiesce();
  keeper.timers.advance(9_999);
  expect(await run()).toBe(409);
  await quiesce();
  keeper.timers.advance(9_999);
  expect(await run()).toBe(409);
  keeper.timers.advance(1);
  expect(await run()).toBe(200);
});

test("a busy answer opens the gate again", async () => {
  await using keeper = await inProcessKeeper();
  expect((await keeper.call("/v1/quiesce", { lifetimeMs: 0 })).body.state).toBe("quiesced");
  expect((await keeper.call("/v1/quiesce", { lifetimeMs: 60_000 })).body.state).toBe("busy");
  expect((await keeper.call("/v1/exec", { command: ["true"] })).status).toBe(200);
  keeper.timers.advance(60_000);
  expect((await keeper.call("/v1/quiesce", { lifetimeMs: 60_000 })).body.state).toBe("quiesced");
});

test("a command races with quiesce: it is seen, or it is refused; nothing runs in a quiesced sandbox", async () => {
  await using keeper = await startTestKeeper();
  const runs = join(keeper.dir, "runs");
  const ran = () => (existsSync(runs) ? readFileSync(runs, "utf8").length : 0);
  const seen = { busy: 0, refused: 0 };
  for (let round = 0; round < 200; round++) {
    // Different connections, and each comes first in half of the rounds.
    const exec = () => keeper.call("/v1/exec", { command: `printf x >>${runs}; sleep 0.01` });
    const quiesce = () => keeper.call("/v1/quiesce", { lifetimeMs: 0 });
    const early = round % 2 === 0 ? exec() : undefined;
    const asked = quiesce();
    const command = early ?? exec();
    const answer = (await asked).body;
    if (answer.state === "quiesced") {
      const before = ran();
      expect((await keeper.call("/v1/keeper")).body.commandsRunning).toBe(0);
      const { status, body } = await command;
      if (status !== 200) expect(body.error).toMatchObject({ code: "quiesced", started: "no" });
      expect(ran()).toBe(before);
      seen.refused += status === 409 ? 1 : 0;
    } else {
      expect((await command).body.exitCode).toBe(0);
      seen.busy++;
    }
    await keeper.call("/v1/resume", {});
  }
  // Otherwise the rounds have shown nothing.
  expect([seen.busy > 10, seen.refused > 10]).toEqual([true, true]);
});
