import { expect, test } from "bun:test";
import { setUpCli, text } from "./test-cli.ts";

const { holdfast, start, fake } = setUpCli();

const create = (name: string, ...flags: string[]) => holdfast(["create", "--name", name, ...flags]);
const lifecycleOf = (name: string) =>
  [...fake().lifecycles.values()].find((one) => one.sandbox.name === name);
const infoOf = (name: string) => [...fake().sandboxes.values()].find((one) => one.name === name);

test("create takes the policy as flags, update changes it, ls and inspect show it", async () => {
  await create(
    "a",
    "--lifetime",
    "2h",
    "--on-idle",
    "remove",
    "--max-lifetime",
    "3d",
    "--turn-timeout",
    "90s",
  );
  const asked = {
    lifetimeSeconds: 7200,
    maxLifetimeSeconds: 259_200,
    turnTimeoutSeconds: 90,
    onIdle: "remove",
  };
  expect(infoOf("a")).toMatchObject(asked);
  expect((await holdfast(["ls"])).stdout).toContain("in 1h: removed\n");
  expect((await holdfast(["update", "a", "--lifetime", "30m", "--on-idle", "keep"])).stdout).toBe("a\n");
  expect(infoOf("a")).toMatchObject({ lifetimeSeconds: 1800, onIdle: "keep", turnTimeoutSeconds: 90 });
  const { stdout } = await holdfast(["inspect", "a"]);
  expect(stdout).toContain(
    "lives:       persistent, persistent files, kept however long it is idle, at most 3d\n",
  );
});

test("what run makes is not persistent, so that nothing of a killed run stays; with --keep it is", async () => {
  const persistent: boolean[] = [];
  for (const flags of [
    ["--keep", "--name", "kept"],
    ["--name", "passing"],
  ]) {
    await holdfast(["run", ...flags, "true"]);
    persistent.push(...[...fake().lifecycles.values()].map(({ sandbox }) => sandbox.persistent).slice(-1));
  }
  expect(persistent).toEqual([true, false]);
});

test("why says what happens next, what holds it and what hunts it", async () => {
  await create("a");
  const { stdout, code } = await holdfast(["why", "a"]);
  expect(code).toBe(0);
  expect(stdout.split("\n")).toEqual([
    "sandbox:     a (sbx_01bcdefgh): running, generation 1",
    "next:        it is stopped once it was idle for 1800 s",
    "alive:       somebody used it 5 s ago",
    "held awake:  command c1 is running",
    "",
  ]);
  expect(JSON.parse((await holdfast(["why", "a", "-o", "json"])).stdout)).toMatchObject({ onIdle: "stop" });
});

test("why of one that was deleted says so, instead of failing", async () => {
  await create("a");
  await holdfast(["rm", "a"]);
  const { stdout, code } = await holdfast(["why", "a"]);
  expect(code).toBe(0);
  expect(stdout).toMatch(/^sandbox: {5}a: deleted \S+Z \(0s ago\)\n/);
  expect(await holdfast(["why", "a", "-o", "json"])).toMatchObject({ code: 1, stdout: "" });
});

test("ls says why one stopped and who has it for itself, in few words", async () => {
  await create("a", "--label", "team=web");
  const lastDeath = { cause: "idle", at: new Date().toISOString(), detail: "keeper pid 7 is gone" };
  const claim = { holder: "ann", expiresAt: lastDeath.at };
  Object.assign(infoOf("a") ?? {}, { state: "stopped", lastDeath, claim });
  expect((await holdfast(["ls"])).stdout).toEndWith("-       idle, 0s ago; claimed by ann; team=web\n");
});

test.each([
  [["-o", "json", "why", "nosuch"], 1],
  [["why", "nosuch", "-o", "json"], 1],
  [["exec", "-o", "json", "nosuch", "--", "true"], 125],
])("%j: a failure is JSON, too, with the code to act on", async (args, code) => {
  const failed = await holdfast(args);
  expect([failed.code, failed.stdout]).toEqual([code, ""]);
  expect(JSON.parse(failed.stderr)).toMatchObject({ error: { code: "not_found", retryable: false } });
});

test("a hard end can be taken away", async () => {
  await create("a", "--max-lifetime", "3d");
  await holdfast(["update", "a", "--max-lifetime", "none"]);
  expect(infoOf("a")?.maxLifetimeSeconds).toBeNull();
});

test("a turn is begun, carried by what follows, and ended; ls shows that it holds", async () => {
  await create("a");
  const HOLDFAST_TURN = (await holdfast(["turn", "begin", "a"])).stdout.trim();
  expect((await holdfast(["ls"])).stdout).toContain("held: turn");
  await holdfast(["exec", "a", "true"], { HOLDFAST_TURN });
  expect(lifecycleOf("a")?.workTurns).toEqual([HOLDFAST_TURN]);
  expect((await holdfast(["turn", "end", "a"], { HOLDFAST_TURN })).stdout).toBe(`${HOLDFAST_TURN}\n`);
  expect(infoOf("a")?.openTurns).toBe(0);
  expect(await holdfast(["turn", "end", "a"])).toMatchObject({
    code: 2,
    stderr: expect.stringContaining("which turn?\nhint: Name the id that `holdfast turn begin` printed"),
  });
});

test("a claim is held until Ctrl-C; its token lets its owner work, and others are refused", async () => {
  await create("a");
  const holding = start(["claim", "a", "--holder", "me"]);
  const { value } = await holding.stdout.getReader().read();
  const HOLDFAST_CLAIM = Buffer.from(value ?? [])
    .toString()
    .trim();
  expect((await holdfast(["exec", "a", "true"], { HOLDFAST_CLAIM })).code).toBe(0);
  const refused = await holdfast(["exec", "a", "true"]);
  expect(refused).toMatchObject({ code: 125, stderr: expect.stringContaining("me holds this sandbox") });
  holding.kill("SIGINT");
  expect(await holding.exited).toBe(0);
  expect(lifecycleOf("a")?.claim).toBeUndefined();
  const left = await holdfast(["claim", "-d", "a"]);
  expect(lifecycleOf("a")?.claim?.token).toBe(left.stdout.trim());
});

test("release gives back the claim and ends the turn of the environment, and needs one of them", async () => {
  await create("a");
  const HOLDFAST_TURN = (await holdfast(["turn", "begin", "a"])).stdout.trim();
  const HOLDFAST_CLAIM = (await holdfast(["claim", "-d", "a"])).stdout.trim();
  const released = await holdfast(["release", "a"], { HOLDFAST_TURN, HOLDFAST_CLAIM });
  expect(released).toEqual({ stdout: "a\n", stderr: "", code: 0 });
  expect([infoOf("a")?.openTurns, lifecycleOf("a")?.claim]).toEqual([0, undefined]);
  expect(await holdfast(["release", "a"])).toMatchObject({
    code: 2,
    stderr: expect.stringContaining(
      "nothing to release: neither HOLDFAST_TURN nor HOLDFAST_CLAIM is set\nhint: ",
    ),
  });
});

test("a claim that somebody takes over is told", async () => {
  await create("a");
  const holding = start(["claim", "a", "--ttl", "1s"]);
  await holding.stdout.getReader().read();
  await holdfast(["claim", "-d", "--takeover", "a"]);
  expect(await holding.exited).toBe(1);
  expect(await text(holding.stderr)).toStartWith("error: this claim is over\n");
});

test("the timeline is followed until the sandbox is deleted", async () => {
  await create("a");
  const following = start(["events", "-f", "a"]);
  const reader = following.stdout.getReader();
  const first = Buffer.from((await reader.read()).value ?? []).toString();
  expect(first).toMatch(/^\S+Z {5}1 {2}created {7}- {15}by=test\n$/);
  await holdfast(["rm", "a"]);
  expect(Buffer.from((await reader.read()).value ?? []).toString()).toContain("deleted");
  expect(await following.exited).toBe(0);
});

test("a detached process can be told when it holds its sandbox", async () => {
  await create("a");
  const id = (await holdfast(["exec", "-d", "--keeps-awake", "always", "a", "true"])).stdout.trim();
  expect(JSON.parse(fake().runs.get(id)?.request ?? "")).toMatchObject({ keepsAwake: "always" });
  expect(await holdfast(["exec", "--keeps-awake", "always", "a", "true"])).toMatchObject({ code: 2 });
});

test("touch, leases, providers and sweep", async () => {
  for (const name of ["a", "b"]) await create(name);
  expect((await holdfast(["touch", "a", "b"])).stdout).toBe("a\nb\n");
  expect((await holdfast(["leases"])).stdout).toBe(
    [
      "INSTANCE  SANDBOX        GEN  PHASE  PROVIDER  AGE  STOPS  NOTE",
      "ins1      sbx_01bcdefgh  1    live   fake      0s   0",
      "",
    ].join("\n"),
  );
  expect((await holdfast(["leases", "-a"])).stdout).toContain("exited: pid 7 is gone");
  expect((await holdfast(["leases", "-a", "-q"])).stdout).toBe("ins1\nins2\n");
  expect((await holdfast(["providers"])).stdout).toBe(
    [
      "PROVIDER        STATE   SLOTS    MEMORY  DISK                    NETWORKS   NOTE",
      "fake (default)  closed  3 of 10  512M    unknown: statfs failed  none full  the file system is read-only",
      "",
    ].join("\n"),
  );
  expect(await holdfast(["sweep", "--dry-run"])).toEqual({
    stdout: [
      "fake: 2 instances, 1 disks, 1 as they should be",
      "WOULD  SANDBOX  INSTANCE  NOT BEFORE  BECAUSE",
      "stop   sbx9     ins9      -           orphan of 2.1 lifetimes",
      "",
    ].join("\n"),
    stderr: "",
    code: 0,
  });
});

test("abandon asks, and where nobody can be asked it needs --yes", async () => {
  await create("a");
  expect(await holdfast(["abandon", "a", "--reason", "x"])).toMatchObject({ code: 2, stdout: "" });
  expect(lifecycleOf("a")?.events.map(({ type }) => type)).not.toContain("abandoned");
  expect((await holdfast(["abandon", "a", "--yes", "--reason", "x"])).stdout).toBe("a\n");
  expect(lifecycleOf("a")?.events.at(-1)).toMatchObject({ type: "abandoned", detail: { reason: "x" } });
});

test.each([
  [["exec", "a", "--keeps-awake", "sometimes", "x"], "error: option '--keeps-awake <when>' argument"],
  [["update", "a"], "error: nothing to change\nhint: Name at least one option, such as --lifetime 2h.\n"],
  [
    ["create", "--lifetime", "1.5s"],
    "error: option '--lifetime <time>' argument '1.5s' is invalid\nhint: Give whole",
  ],
  [
    ["create", "--lifetime", "banana"],
    "error: option '--lifetime <time>' argument 'banana' is invalid\nhint: Give whole seconds, such as",
  ],
  [
    ["create", "--on-idle", "die"],
    "error: option '--on-idle <what>' argument 'die' is invalid\nhint: Allowed",
  ],
  [["turn", "start", "a"], "error: command-argument value 'start' is invalid for argument 'action'. Allowed"],
  [["abandon", "a"], "error: required option '--reason <text>' not specified\n"],
])("%j is refused", async (args, stderr) => {
  await create("a");
  const refused = await holdfast(args);
  expect(refused).toMatchObject({ code: 2, stdout: "" });
  expect(refused.stderr).toStartWith(stderr);
});

test("port gives an address, lists them with what listens, and takes them back", async () => {
  await create("a");
  const { id } = infoOf("a") ?? {};
  const url = `http://3000-${id}-t0ken.localhost:4751/`;
  expect(await holdfast(["port", "a", "3000"])).toEqual({ stdout: `${url}\n`, stderr: "", code: 0 });
  const shared = await holdfast(["port", "--wake", "--public", "-o", "json", "a", "5173"]);
  expect(JSON.parse(shared.stdout)).toMatchObject({ port: 5173, wake: true, public: true });
  expect((await holdfast(["port", "a"])).stdout.split("\n").slice(0, 2)).toEqual([
    expect.stringMatching(/^PORT +LISTENING +AGE +URL/),
    expect.stringContaining(url),
  ]);
  expect((await holdfast(["port", "--close", "a", "3000"])).code).toBe(0);
  expect((await holdfast(["port", "a"])).stdout).toMatch(/^8080 +yes +- +-/m);
  expect((await holdfast(["port", "a"])).stdout).not.toContain(url);
  expect((await holdfast(["port", "--wake", "a"])).stderr).toContain("which port?");
});
