import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { DockerDaemon } from "./docker-daemon.ts";
import { freePort } from "./docker-remote.ts";

/** A registry of our own on the loopback device; the daemon must be on our network. */
export interface ImageRegistry {
  /** As the first part of an image's name. */
  readonly host: string;
  /** What was asked of it: `GET /v2/tools/manifests/1`. */
  readonly requests: readonly string[];
  /** While it holds, layers are promised and do not come. */
  hold(): void;
  letGo(): void;
  push(daemon: DockerDaemon, image: string, name: string): Promise<void>;
  stop(): Promise<void>;
}

/** Why there can be none here; `undefined` if there can. */
export function missingRegistry(): string | undefined {
  return Bun.which("docker-registry") === null ? "needs docker-registry" : undefined;
}

/** `login`: the one who may use it; without, everybody. */
export async function startImageRegistry(login?: {
  username: string;
  password: string;
}): Promise<ImageRegistry> {
  const dir = mkdtempSync(join(tmpdir(), "holdfast-registry-"));
  const port = await freePort();
  writeFileSync(join(dir, "config.json"), JSON.stringify(await configOf(dir, port, login)));
  const argv = ["setpriv", "--pdeathsig", "KILL", "docker-registry", "serve", join(dir, "config.json")];
  const log = Bun.file(join(dir, "log"));
  const server = Bun.spawn(argv, { stdin: "ignore", stdout: log, stderr: log });
  while (!(await answers(port))) {
    if (server.exitCode !== null) throw new Error(`the registry did not start: ${await log.text()}`);
    await Bun.sleep(20);
  }
  const gate = new Gate();
  const front = inFrontOf(port, gate);
  return {
    host: `127.0.0.1:${front.port}`,
    requests: gate.requests,
    hold: () => gate.hold(),
    letGo: () => gate.letGo(),
    push: (daemon, image, name) => push({ daemon, image, to: `127.0.0.1:${port}/${name}`, login }),
    async stop() {
      gate.letGo();
      await front.stop(true);
      server.kill("SIGKILL");
      await server.exited;
      rmSync(dir, { recursive: true, force: true });
    },
  };
}

/** A layer; everything else that a registry answers with is small. */
const LARGE_BYTES = 64 * 1024;

class Gate {
  readonly requests: string[] = [];
  #held: PromiseWithResolvers<void> | undefined;

  hold(): void {
    this.#held ??= Promise.withResolvers<void>();
  }

  letGo(): void {
    this.#held?.resolve();
    this.#held = undefined;
  }

  async pass(answer: Response): Promise<Response> {
    if (Number(answer.headers.get("Content-Length")) > LARGE_BYTES) await this.#held?.promise;
    return answer;
  }
}

/** Between the daemon and the registry, so that a test has a hand on what comes when. */
function inFrontOf(port: number, gate: Gate): Bun.Server<undefined> {
  return Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    idleTimeout: 0,
    async fetch(request) {
      const { pathname, search } = new URL(request.url);
      const { method, headers } = request;
      gate.requests.push(`${method} ${pathname}`);
      const url = `http://127.0.0.1:${port}${pathname}${search}`;
      return gate.pass(await fetch(url, { method, headers, decompress: false }));
    },
  });
}

async function configOf(dir: string, port: number, login?: { username: string; password: string }) {
  mkdirSync(join(dir, "data"));
  const config = {
    version: "0.1",
    log: { level: "warn" },
    storage: { filesystem: { rootdirectory: join(dir, "data") } },
    http: { addr: `127.0.0.1:${port}` },
  };
  if (login === undefined) return config;
  const path = join(dir, "htpasswd");
  const hash = await Bun.password.hash(login.password, { algorithm: "bcrypt", cost: 4 });
  writeFileSync(path, `${login.username}:${hash}\n`);
  return { ...config, auth: { htpasswd: { realm: "test", path } } };
}

async function answers(port: number): Promise<boolean> {
  try {
    return (await fetch(`http://127.0.0.1:${port}/v2/`)).status < 500;
  } catch {
    return false; // it does not listen yet
  }
}

interface Push {
  readonly daemon: DockerDaemon;
  readonly image: string;
  readonly to: string;
  readonly login: { username: string; password: string } | undefined;
}

/** Leaves the image under its old name alone on the daemon. */
async function push({ daemon, image, to, login }: Push): Promise<void> {
  const [, repo = "", tag = ""] = /^(.*):([^:]+)$/.exec(to) ?? [];
  await daemon.ask("POST", `/images/${image}/tag?${new URLSearchParams({ repo, tag })}`);
  const response = await fetch(`http://docker/images/${repo}/push?tag=${tag}`, {
    unix: daemon.host.replace("unix://", ""),
    method: "POST",
    headers: { "X-Registry-Auth": Buffer.from(JSON.stringify(login ?? {})).toString("base64") },
  });
  const said = await response.text();
  if (!response.ok || said.includes('"error"')) throw new Error(`push ${to}: ${said.slice(-500)}`);
  await daemon.ask("DELETE", `/images/${to}`);
}
