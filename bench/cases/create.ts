import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Operator, Sandbox } from "holdfast";
import type { TestServer } from "../../e2e/harness.ts";
import type { Bench, Case, Dockers } from "../bench.ts";
import { execByApi, removeByApi, startByApi } from "../docker-by-api.ts";
import { bareSpawn } from "../floors.ts";
import type { Contender } from "../measure.ts";

/**
 * From nothing to the answer of a first command. What was made goes afterwards, outside of the time; and there the next
 * spare is waited for, which a create after a pause has, and the first one and a burst have not.
 */
export const create: Case = {
  name: "create",
  about: "Create to first command",
  async run(bench) {
    const server = await bench.server();
    const cold = await bench.newServer({ args: ["--spares", "0"] });
    using bwrap = new BareBwrap();
    const docker = await bench.docker();
    for (const network of ["none", "full"] as const) {
      const floor = { role: "floor", name: BWRAP, run: () => bwrap.run() } as const;
      const peer = network === "none" ? dockerRun(docker) : undefined;
      const often = { rounds: 30, atMostSeconds: 60 };
      const aims = network === "none" ? [{ to: BWRAP, atMost: 2.5 }] : [];
      const warm = withSpare(ours(server, { network }), server);
      await bench.compare(`local, network ${network}`, [warm, floor, peer], { ...often, aims });
      await bench.compare(
        `local, network ${network}, without a spare`,
        [ours(cold, { network }), floor],
        often,
      );
    }
    if (docker !== undefined) await onDocker(bench, docker);
    for (const count of bench.isShort ? [] : [30, 100]) await burst(bench, server, bwrap, count);
    if (docker !== undefined) for (const count of [30, 100]) await dockerBurst(bench, docker, count);
  },
};

const BWRAP = "bwrap, the same namespaces and mounts";

function ours(server: TestServer, spec: { network: "none" | "full" }): Contender {
  let made: Sandbox | undefined;
  return {
    role: "ours",
    name: "ours",
    run: async () => {
      made = await Sandbox.create(spec, server.at);
      await answers(made);
    },
    tidy: async () => made?.delete({ force: true }),
  };
}

/** The same, and then until the next one is ready. */
function withSpare(contender: Contender, server: TestServer): Contender {
  const ready = async () => {
    const since = Date.now();
    const operator = await Operator.connect(server.at);
    for (;;) {
      for await (const { spare, phase, createdAt } of operator.leases())
        if (spare && phase === "live" && Date.parse(createdAt) >= since) return;
      await Bun.sleep(10);
    }
  };
  return { ...contender, tidy: () => Promise.all([contender.tidy?.(), ready()]) };
}

async function onDocker(bench: Bench, docker: Dockers): Promise<void> {
  let id = "";
  const floor = { ...(dockerRun(docker) as Contender), role: "floor" } as const;
  const cold = await bench.newServer({
    args: ["--providers", "docker", "--docker-image", docker.image, "--spares", "0"],
    env: { DOCKER_HOST: docker.daemon.host },
  });
  await bench.compare("Docker, network none, without a spare", [ours(cold, { network: "none" }), floor], {
    rounds: 20,
    atMostSeconds: 60,
    warmUps: 2,
  });
  await bench.compare(
    "Docker, network none",
    [
      withSpare(ours(docker.server, { network: "none" }), docker.server),
      floor,
      {
        role: "peer",
        name: "create, start and exec by the API",
        run: async () => {
          id = await startByApi(docker);
          await execByApi(docker, id, ["/bin/echo", "hi"]);
        },
        tidy: () => removeByApi(docker, id),
      },
    ],
    { rounds: 20, atMostSeconds: 90, warmUps: 2, aims: [{ to: "docker run", atMost: 1.15 }] },
  );
}

async function burst(bench: Bench, server: TestServer, bwrap: BareBwrap, count: number): Promise<void> {
  const all = <T>(work: () => Promise<T>) => Promise.all(Array.from({ length: count }, work));
  await bench.compare(
    `local, a burst of ${count} at once, until all have answered`,
    [
      {
        role: "ours",
        name: "ours",
        run: () => all(async () => answers(await Sandbox.create({ network: "none" }, server.at))),
        tidy: () => server.deleteAll(),
      },
      { role: "floor", name: "so many bwrap at once", run: () => all(() => bwrap.run()) },
    ],
    { rounds: 3, warmUps: 1 },
  );
}

async function dockerBurst(bench: Bench, docker: Dockers, count: number): Promise<void> {
  const all = <T>(work: () => Promise<T>) => Promise.all(Array.from({ length: count }, work));
  const run = dockerRun(docker);
  await bench.compare(
    `Docker, a burst of ${count} at once, until all have answered`,
    [
      {
        role: "ours",
        name: "ours",
        run: () => all(async () => answers(await Sandbox.create({ network: "none" }, docker.server.at))),
        tidy: () => docker.server.deleteAll(),
      },
      { role: "floor", name: "so many docker run at once", run: () => all(async () => run?.run()) },
    ],
    { rounds: 1, warmUps: 0 },
  );
}

async function answers(sandbox: Sandbox): Promise<void> {
  const { stdout, exitCode } = await sandbox.exec(["/bin/echo", "hi"]);
  if (exitCode !== 0 || stdout !== "hi\n") throw new Error(`a first command gave ${exitCode}, ${stdout}`);
}

function dockerRun(docker: Dockers | undefined): Contender | undefined {
  if (docker === undefined) return undefined;
  const command = [...docker.cli, "run", "--rm", "--network", "none", docker.image, "/bin/echo", "hi"];
  return { role: "peer", name: "docker run", run: () => bareSpawn(command) };
}

/** The separation and the mounts of a local sandbox (`bwrap-args.ts`), with `echo` in the place of a keeper. */
class BareBwrap implements Disposable {
  readonly #dir = mkdtempSync(join(tmpdir(), "holdfast-bench-"));

  constructor() {
    for (const name of ["tmp", "var", "home", "workspace", "state", "run"]) mkdirSync(join(this.#dir, name));
    writeFileSync(join(this.#dir, "passwd"), "user:x:1000:1000::/home/user:/bin/sh\n");
  }

  run(): Promise<string> {
    const own = (name: string) => join(this.#dir, name);
    return bareSpawn([
      ...["bwrap", "--unshare-user", "--unshare-pid", "--unshare-ipc", "--unshare-uts"],
      ...["--unshare-cgroup-try", "--unshare-net", "--disable-userns", "--cap-drop", "ALL"],
      ...[
        "--new-session",
        "--as-pid-1",
        "--uid",
        "1000",
        "--gid",
        "1000",
        "--hostname",
        "bench",
        "--clearenv",
      ],
      ...["--ro-bind", "/usr", "/usr", "--symlink", "usr/bin", "/bin", "--symlink", "usr/lib", "/lib"],
      ...["--symlink", "usr/lib64", "/lib64", "--symlink", "usr/sbin", "/sbin", "--dir", "/etc"],
      ...["--ro-bind-try", "/etc/ssl/certs", "/etc/ssl/certs", "--ro-bind", own("passwd"), "/etc/passwd"],
      ...["--proc", "/proc", "--dev", "/dev", "--tmpfs", "/dev/shm", "--remount-ro", "/dev", "--dir", "/run"],
      ...[
        "--bind",
        own("tmp"),
        "/tmp",
        "--bind",
        own("var"),
        "/var/tmp",
        "--bind",
        own("home"),
        "/home/user",
      ],
      ...["--bind", own("workspace"), "/workspace", "--bind", own("state"), "/.state"],
      ...["--bind", own("run"), "/.run", "--remount-ro", "/", "--chdir", "/", "--", "/bin/echo", "hi"],
    ]);
  }

  [Symbol.dispose](): void {
    rmSync(this.#dir, { recursive: true, force: true });
  }
}
