import { randomBytes } from "node:crypto";
import {
  chmodSync,
  chownSync,
  existsSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  realpathSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { SQL } from "bun";

/** A PostgreSQL of our own: it is there from `startPostgres` to `stop`, and leaves nothing behind. */
export interface Postgres {
  /** The URL of a new, empty database. */
  newDatabase(): Promise<string>;
  /** May be called twice. */
  stop(): Promise<void>;
}

const USER = "holdfast";
const DEBIAN = "/usr/lib/postgresql";

/** Why there can be no PostgreSQL here; `undefined` if there can. */
export function missingPostgres(): string | undefined {
  if (binaries() === undefined) return "needs PostgreSQL: apt-get install postgresql";
  if (process.getuid?.() === 0 && account() === undefined)
    return "needs a user postgres: PostgreSQL does not run as root";
  return undefined;
}

/** Nothing of it is meant to survive, so it does not wait for the disk, unless that is what is measured. */
export async function startPostgres({ fsync = "off" }: { fsync?: "on" | "off" } = {}): Promise<Postgres> {
  const bin = binaries();
  if (bin === undefined) throw new Error(missingPostgres());
  const dir = mkdtempSync(join(tmpdir(), "holdfast-postgres-"));
  const password = randomBytes(16).toString("hex");
  try {
    await initialize({ bin, dir, password });
    const port = await freePort();
    const server = await serve({ bin, dir, port, fsync });
    const urlOf = (database: string) => `postgres://${USER}:${password}@127.0.0.1:${port}/${database}`;
    return new Cluster({ dir, server, urlOf });
  } catch (error) {
    rmSync(dir, { recursive: true, force: true });
    throw error;
  }
}

class Cluster implements Postgres {
  readonly #dir: string;
  readonly #server: Bun.Subprocess;
  readonly #urlOf: (database: string) => string;
  readonly #admin: SQL;
  #databases = 0;
  #stopped: Promise<void> | undefined;

  constructor(options: { dir: string; server: Bun.Subprocess; urlOf: (database: string) => string }) {
    this.#dir = options.dir;
    this.#server = options.server;
    this.#urlOf = options.urlOf;
    this.#admin = new SQL(options.urlOf("postgres"), { max: 1 });
  }

  async newDatabase(): Promise<string> {
    const name = `test_${++this.#databases}`;
    await this.#admin.unsafe(`CREATE DATABASE ${name}`);
    return this.#urlOf(name);
  }

  stop(): Promise<void> {
    this.#stopped ??= this.#stop();
    return this.#stopped;
  }

  async #stop(): Promise<void> {
    await this.#admin.close({ timeout: 0 });
    // An immediate end: whatever is connected is cut off, and nothing has to be written.
    this.#server.kill("SIGQUIT");
    await this.#server.exited;
    rmSync(this.#dir, { recursive: true, force: true });
  }
}

async function initialize({
  bin,
  dir,
  password,
}: {
  bin: string;
  dir: string;
  password: string;
}): Promise<void> {
  const passwordFile = join(dir, "password");
  writeFileSync(passwordFile, password);
  own(dir, passwordFile);
  const options = [
    "--auth=scram-sha-256",
    `--pwfile=${passwordFile}`,
    "--no-sync",
    "--encoding=UTF8",
    "--locale=C",
  ];
  const command = [join(bin, "initdb"), `--pgdata=${join(dir, "data")}`, `--username=${USER}`, ...options];
  const child = Bun.spawn(unprivileged(command), { cwd: dir, stdout: "ignore", stderr: "pipe" });
  const said = await new Response(child.stderr).text();
  if ((await child.exited) !== 0) throw new Error(`initdb failed: ${said}`);
}

/** Resolves when it takes connections. It ends with us, also if we are killed. */
async function serve({
  bin,
  dir,
  port,
  fsync,
}: {
  bin: string;
  dir: string;
  port: number;
  fsync: "on" | "off";
}): Promise<Bun.Subprocess> {
  const settings = [
    `port=${port}`,
    "listen_addresses=127.0.0.1",
    `unix_socket_directories=${dir}`,
    `fsync=${fsync}`,
  ];
  const command = [
    join(bin, "postgres"),
    "-D",
    join(dir, "data"),
    ...settings.flatMap((setting) => ["-c", setting]),
  ];
  const child = Bun.spawn(unprivileged(["setpriv", "--pdeathsig", "QUIT", ...command]), {
    cwd: dir,
    stdout: "ignore",
    stderr: "pipe",
  });
  const log = child.stderr.getReader();
  const decoder = new TextDecoder();
  let said = "";
  while (!said.includes("ready to accept connections")) {
    const { done, value } = await log.read();
    if (done) throw new Error(`PostgreSQL did not start: ${said}`);
    said += decoder.decode(value, { stream: true });
  }
  void drain(log);
  return child;
}

/** A full pipe would stop it. */
async function drain(log: { read(): Promise<{ done: boolean }> }): Promise<void> {
  while (!(await log.read()).done);
}

async function freePort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const address = server.address();
  await new Promise((resolve) => server.close(resolve));
  if (address === null || typeof address === "string") throw new Error("no loopback port is free");
  return address.port;
}

/** Debian keeps them apart by version, outside of the path; the newest counts. */
function binaries(): string | undefined {
  const inPath = Bun.which("initdb");
  const versions = existsSync(DEBIAN) ? readdirSync(DEBIAN).sort((a, b) => Number(b) - Number(a)) : [];
  return [
    ...versions.map((version) => join(DEBIAN, version, "bin")),
    ...(inPath === null ? [] : [dirname(realpathSync(inPath))]),
  ].find((bin) => existsSync(join(bin, "initdb")) && existsSync(join(bin, "postgres")));
}

function account(): { uid: number; gid: number } | undefined {
  const line = readFileSync("/etc/passwd", "utf8").match(/^postgres:[^:]*:(\d+):(\d+):/m);
  return line === null ? undefined : { uid: Number(line[1]), gid: Number(line[2]) };
}

/** PostgreSQL refuses to run as root. */
function unprivileged(command: string[]): string[] {
  const user = process.getuid?.() === 0 ? account() : undefined;
  if (user === undefined) return command;
  return ["setpriv", `--reuid=${user.uid}`, `--regid=${user.gid}`, "--clear-groups", ...command];
}

function own(...paths: string[]): void {
  const user = process.getuid?.() === 0 ? account() : undefined;
  for (const path of paths) {
    if (user !== undefined) chownSync(path, user.uid, user.gid);
    else chmodSync(path, 0o700);
  }
}
