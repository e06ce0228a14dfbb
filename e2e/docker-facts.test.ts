import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { type DockerDaemon, missingDocker, startDockerDaemon } from "@holdfast/testkit";
import { Sandbox } from "holdfast";
import { TestServer } from "./harness.ts";

const missing = missingDocker();
const TIMEOUT_MS = 120_000;

interface Listed {
  readonly Id: string;
  readonly Names: string[];
  readonly State: string;
}

describe.skipIf(missing !== undefined)(`docker: what is so, and what others do to it${missing ?? ""}`, () => {
  let daemon: DockerDaemon;
  let server: TestServer;
  beforeAll(async () => {
    daemon = await startDockerDaemon();
    server = await TestServer.start({
      args: ["--providers", "docker,local", "--docker-image", daemon.images.debian],
      env: { DOCKER_HOST: daemon.host },
    });
  }, TIMEOUT_MS);
  afterAll(async () => {
    await server?.dispose();
    await daemon?.stop();
  }, TIMEOUT_MS);

  const listed = async (id: string) =>
    ((await daemon.ask("GET", "/containers/json?all=1")) as Listed[]).filter(({ Names }) =>
      Names.some((name) => name.includes(id)),
    );
  const container = async ({ id }: Sandbox) => {
    const [one] = await listed(id);
    if (one === undefined) throw new Error(`${id} has no container`);
    return (await daemon.ask("GET", `/containers/${one.Id}/json`)) as {
      Id: string;
      Name: string;
      State: { Status: string; StartedAt: string; Pid: number };
    };
  };
  const left = async () => {
    const { Volumes } = (await daemon.ask("GET", "/volumes")) as { Volumes: { Name: string }[] | null };
    const networks = (await daemon.ask("GET", "/networks")) as { Name: string }[];
    return [
      ...(await listed("hf-")).flatMap(({ Names }) => Names),
      ...(Volumes ?? []).map(({ Name }) => Name),
      ...networks.map(({ Name }) => Name).filter((name) => name.startsWith("hf-")),
    ];
  };
  /** Nobody uses it: what is seen was noticed. */
  const untilState = async (sandbox: Sandbox, state: string) => {
    while ((await sandbox.refresh()).state !== state) await Bun.sleep(20);
    return sandbox.info;
  };

  test(
    "the seven facts of a persistent one",
    async () => {
      const sandbox = await Sandbox.create({ name: "facts", user: "root" }, server.at);
      const loop = await sandbox.startProcess("while sleep 0.1; do echo round; done");
      await sandbox.exec("echo kept > /workspace/note; echo too > /etc/note; echo on > /tmp/note");
      await sandbox.release();
      const before = await container(sandbox);
      expect(before.State.Status).toBe("running");
      const bound = await Sandbox.create({ name: "bound", persistAcrossRestarts: false }, server.at);
      await server.restart("SIGKILL");
      // The one that is to end with its server was not adopted.
      expect((await untilState(bound, "stopped")).lastDeath).toMatchObject({ cause: "server_restarted" });
      expect((await container(bound)).State.Status).toBe("exited");
      await bound.delete();
      const again = await Sandbox.get("facts", server.at);
      const { stdout } = await again.exec("cat /workspace/note /etc/note /tmp/note", { ifGeneration: 1 });
      expect(stdout).toBe("kept\ntoo\non\n");
      const after = await container(again);
      expect([after.Id, after.State]).toEqual([before.Id, before.State]);
      const process = await again.getProcess(loop.processId);
      const { nextOffset } = (await process.info()).log;
      while ((await process.info()).log.nextOffset === nextOffset) await Bun.sleep(20);
      await again.stop();
      expect((await again.exec("cat /workspace/note /etc/note; ls /tmp")).stdout).toBe("kept\ntoo\n");
      expect((await again.refresh()).info).toMatchObject({ generation: 2, continuity: "same-filesystem" });
      expect((await container(again)).Id).toBe(before.Id);
      await again.delete({ force: true });
      expect(await left()).toEqual([]);
      const removed = (await Sandbox.events(again.id, server.at)).find(({ type }) => type === "disk_removed");
      const parts = ["disk-[0-9a-f]+", "workspace", "home", "state"].map((part) => `hf-${again.id}-${part}`);
      for (const name of [...parts, "the network hf-[0-9a-f]+"])
        expect(String(removed?.detail.what)).toMatch(new RegExp(`${name} does not exist`));
    },
    TIMEOUT_MS,
  );

  test(
    "what somebody else does to a container is noticed at once, told with its cause, and made good by the next use",
    async () => {
      const sandbox = await Sandbox.create({ name: "outside", user: "root" }, server.at);
      await sandbox.exec("echo mine > /workspace/note; echo mine > /etc/note");
      const deeds = [
        ["POST", "/kill", "killed_outside"],
        ["POST", "/stop", "killed_outside"],
        ["POST", "/restart", "killed_outside"],
      ] as const;
      for (const [method, deed, cause] of deeds) {
        const { Id } = await container(sandbox);
        await daemon.ask(method, `/containers/${Id}${deed}`);
        expect((await untilState(sandbox, "stopped")).lastDeath).toMatchObject({ cause });
        expect((await sandbox.exec("cat /workspace/note /etc/note")).stdout).toBe("mine\nmine\n");
        expect((await sandbox.refresh()).info.continuity).toBe("same-filesystem");
      }
      const { generation } = sandbox;
      await daemon.ask("DELETE", `/containers/${(await container(sandbox)).Id}?force=1`);
      expect((await untilState(sandbox, "stopped")).lastDeath).toMatchObject({ cause: "removed_outside" });
      const lost = await server.fetch(`/v1/sandboxes/${sandbox.id}/exec`, {
        method: "POST",
        body: JSON.stringify({ command: "true" }),
        headers: { "If-Generation": String(generation), "If-Continuity": "same-filesystem" },
      });
      const details = { continuity: "restored", losses: ["the container's own files"] };
      expect(await lost.json()).toMatchObject({ error: { code: "state_lost", started: "no", details } });
      expect(await sandbox.exec("cat /workspace/note; ls /etc/note")).toMatchObject({ stdout: "mine\n" });
      expect((await sandbox.refresh()).info).toMatchObject({
        continuity: "restored",
        losses: ["the container's own files"],
      });
      const { Id } = await container(sandbox);
      await daemon.ask("POST", `/containers/${Id}/pause`);
      await untilState(sandbox, "paused");
      await daemon.ask("POST", `/containers/${Id}/unpause`);
      await untilState(sandbox, "running");
      await sandbox.pause();
      expect((await container(sandbox)).State.Status).toBe("paused");
      await server.restart("SIGKILL");
      const again = await Sandbox.get("outside", server.at);
      expect(again.state).toBe("paused");
      expect((await again.exec("echo awake")).stdout).toBe("awake\n");
      await again.pause();
      await again.delete();
    },
    TIMEOUT_MS,
  );

  test(
    "a container that runs out of memory as a whole is told to have",
    async () => {
      const limits = { memoryMiB: 64 };
      const sandbox = await Sandbox.create({ name: "hungry", limits }, server.at);
      // What is in /tmp is in memory, and is nobody's: in the end nobody is left to be ended but the keeper.
      const fill = "while :; do printf '%65536s' x; done > /tmp/fill";
      await sandbox.startProcess(["bash", "-c", `(${fill}); (${fill}); ${fill}`]);
      const { lastDeath } = await untilState(sandbox, "stopped");
      expect(lastDeath).toMatchObject({ cause: "oom" });
      expect((await sandbox.why()).lastDeath).toEqual(lastDeath);
      await sandbox.delete();
    },
    TIMEOUT_MS,
  );

  test(
    "a restart of the daemon is told as one, and with live-restore nothing inside notices",
    async () => {
      const sandbox = await Sandbox.create({ name: "daemon" }, server.at);
      await sandbox.exec("echo kept > /workspace/note");
      // The old one ends what it holds; the new one would not.
      await daemon.restart({ signal: "SIGTERM", liveRestore: true });
      expect((await untilState(sandbox, "stopped")).lastDeath).toMatchObject({ cause: "daemon_restarted" });
      expect((await sandbox.exec("cat /workspace/note; echo on > /tmp/note")).stdout).toBe("kept\n");
      const { generation } = await sandbox.refresh();
      await daemon.restart({ signal: "SIGKILL" });
      expect((await sandbox.exec("cat /tmp/note", { ifGeneration: generation })).stdout).toBe("on\n");
      await sandbox.delete();
      expect(await left()).toEqual([]);
    },
    TIMEOUT_MS,
  );

  test(
    "thirty at the same time are created, used and deleted, and nothing of them is left",
    async () => {
      const all = await Promise.all(
        Array.from({ length: 30 }, (_, i) => Sandbox.create({ name: `many-${i}` }, server.at)),
      );
      const said = await Promise.all(all.map((sandbox) => sandbox.exec(["echo", sandbox.name])));
      expect(said.map(({ stdout }) => stdout)).toEqual(all.map(({ name }) => `${name}\n`));
      await Promise.all(all.map((sandbox) => sandbox.delete({ force: true })));
      expect(await left()).toEqual([]);
    },
    TIMEOUT_MS,
  );
});
