import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { connect, createServer, type Server } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import {
  type DockerDaemon,
  missingDocker,
  missingSsh,
  type SshServer,
  startDockerDaemon,
  startSshServer,
} from "@holdfast/testkit";
import { DockerApi } from "./api.ts";
import { execIn } from "./exec-stream.ts";
import { DockerMachine } from "./test-machine.ts";
import { isOpenToOthers } from "./transport.ts";

const TIMEOUT_MS = 120_000;
const soon = () => AbortSignal.timeout(20_000);
const missing = missingDocker() ?? missingSsh();

describe.skipIf(missing !== undefined)(`docker: ways to a daemon${missing ? ` (${missing})` : ""}`, () => {
  const runDir = mkdtempSync(join(tmpdir(), "holdfast-way-"));
  const path = process.env.PATH;
  let daemon: DockerDaemon;
  let ssh: SshServer;
  let front: Server;
  beforeAll(async () => {
    daemon = await startDockerDaemon({ remote: { hidden: [] } });
    ssh = await startSshServer({ env: { DOCKER_HOST: daemon.host } });
    process.env.PATH = `${ssh.bin}:${path}`;
    const Entrypoint = ["/bin/sleep", "600"];
    const json = { Image: daemon.images.busybox, Entrypoint, HostConfig: { NetworkMode: "none" } };
    await daemon.ask("POST", "/containers/create?name=way", json);
    await daemon.ask("POST", "/containers/way/start");
    front = await inFrontOf(daemon.host.replace("unix://", ""));
  }, TIMEOUT_MS);
  afterAll(async () => {
    process.env.PATH = path;
    front?.close();
    await ssh?.stop();
    await daemon?.stop();
    rmSync(runDir, { recursive: true, force: true });
  }, TIMEOUT_MS);

  const tls = () => ({ host: daemon.remote?.host ?? "", certPath: daemon.remote?.certPath });
  const ways: Record<string, () => { host: string; certPath?: string | undefined }> = {
    unix: () => daemon,
    tcp: () => ({ host: `tcp://127.0.0.1:${portOf(front)}` }),
    "tcp with TLS": tls,
    ssh: () => ({ host: `ssh://root@127.0.0.1:${ssh.port}` }),
  };

  for (const [name, way] of Object.entries(ways)) {
    test(
      `${name}: calls are answered, what happens is heard while one listens, and a program is spoken with`,
      async () => {
        const { host, certPath } = way();
        const api = new DockerApi(host, { certPath, runDir });
        const over = new AbortController();
        const events = api.lines<{ Actor: { Attributes: { name?: string } } }>({
          ...{ method: "GET", path: "/events", query: { filters: '{"type":["container"]}' } },
          signal: over.signal,
        });
        const heard = events.next();
        const Name = `way-${Math.random().toString(36).slice(2)}`;
        // Made again until it is heard: nothing says when the daemon has begun to listen.
        let isHeard = false;
        void heard.then(() => {
          isHeard = true;
        });
        while (!isHeard) {
          await api.json({
            method: "POST",
            path: "/containers/create",
            query: { name: Name },
            json: { Image: daemon.images.busybox, Cmd: ["true"] },
            signal: soon(),
          });
          await api.request({ method: "DELETE", path: `/containers/${Name}`, signal: soon() });
        }
        expect((await heard).value).toMatchObject({ Actor: { Attributes: { name: Name } } });
        expect(
          await api.json({ method: "GET", path: "/containers/none/json", expect: [404], signal: soon() }),
        ).toBeUndefined();
        over.abort(new Error("enough"));
        await expect(drain(events)).rejects.toThrow("enough");
        // Much, in both directions, through a program in a container.
        const { stream } = await execIn(api, "way", { argv: ["/bin/cat"], signal: soon() });
        const bytes = Buffer.alloc(1_000_000, "0123456789");
        stream.end(bytes);
        expect(Buffer.compare(Buffer.concat(await Array.fromAsync(stream)), bytes)).toBe(0);
      },
      TIMEOUT_MS,
    );
  }

  test(
    "ssh: a sandbox is launched, found by the next server, used and removed by that way alone",
    async () => {
      const machine = DockerMachine.at(daemon.host, undefined, ways.ssh?.().host);
      try {
        const ref = await machine.launch({ network: "none" });
        expect(await machine.exec(ref, "echo far; id -u")).toMatchObject({ stdout: "far\n1000\n" });
        const next = machine.open();
        expect(await next.observe(ref, soon())).toMatchObject({ state: "running" });
        expect((await next.capacity(soon())).disk.freeBytes).toBeGreaterThan(0);
        expect(await next.stop(ref, "graceful", soon())).toMatchObject({ proof: "exited" });
        await machine.clear();
        const left = (await daemon.ask("GET", "/containers/json?all=1")) as { Names: string[] }[];
        expect(left.flatMap(({ Names }) => Names)).toEqual(["/way"]);
      } finally {
        await machine.close();
      }
    },
    TIMEOUT_MS,
  );

  test(
    "what is wrong on the way is said, with what to do",
    async () => {
      const wrong = async (host: string, certPath?: string) =>
        new DockerApi(host, { certPath, runDir })
          .request({ method: "GET", path: "/info", signal: soon() })
          .then(
            () => "nothing",
            (error: unknown) => error,
          );
      const address = tls();
      expect(await wrong(address.host)).toMatchObject({
        code: "provider_unavailable",
        hint: expect.stringContaining("DOCKER_TLS_VERIFY=1"),
      });
      expect(await wrong(address.host, join(runDir, "none"))).toMatchObject({
        code: "provider_unavailable",
        message: expect.stringContaining("ca.pem"),
      });
      expect(await wrong("tcp://127.0.0.1:1")).toMatchObject({
        code: "provider_unavailable",
        message: "no Docker daemon answers on tcp://127.0.0.1:1",
      });
      expect(await wrong("ssh://root@127.0.0.1:1")).toMatchObject({
        code: "provider_unavailable",
        message: expect.stringContaining("refused"),
      });
      expect(await wrong(`ssh://nobody-here@127.0.0.1:${ssh.port}`)).toMatchObject({
        code: "provider_unavailable",
        hint: expect.stringContaining("authorized_keys"),
      });
    },
    TIMEOUT_MS,
  );
});

test("only what is read by others on its way is said to be", () => {
  const open = (host: string, certPath?: string) => isOpenToOthers({ host, certPath });
  expect([open("tcp://10.0.0.1:2375"), open("tcp://127.0.0.1.example.org:2375")]).toEqual([true, true]);
  expect([
    open("tcp://127.0.0.1:2375"),
    open("tcp://10.0.0.1:2376", "/certs"),
    open("ssh://h"),
    open("unix:///s"),
  ]).toEqual([false, false, false, false]);
});

for (const host of [
  "npipe:////./pipe/docker",
  "ssh://-oProxyCommand=x",
  "ssh://user:password@host",
  "tcp://",
]) {
  test(`${host} is refused`, () => {
    const refused = expect.objectContaining({ code: "unsupported" });
    expect(() => new DockerApi(host)).toThrow(refused);
  });
}

async function drain(stream: AsyncIterable<unknown>): Promise<void> {
  for await (const _ of stream);
}

/** Takes plain connections, which no daemon of ours offers. */
async function inFrontOf(socket: string): Promise<Server> {
  const server = createServer({ allowHalfOpen: true }, (near) => {
    const far = connect({ path: socket, allowHalfOpen: true });
    near.pipe(far).pipe(near);
    for (const one of [near, far]) one.on("error", () => [near, far].map((end) => end.destroy()));
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return server;
}

function portOf(server: Server): number {
  const address = server.address();
  return typeof address === "object" && address !== null ? address.port : 0;
}
