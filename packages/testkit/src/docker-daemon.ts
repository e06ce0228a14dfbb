import { existsSync, mkdtempSync, readdirSync, readFileSync, rmdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DaemonClient, type TestImage } from "./docker-client.ts";
import { type Engine, type EngineCommand, engineCommand, socketIn } from "./docker-engines.ts";
import { type RemoteAccess, remoteAccess } from "./docker-remote.ts";
import { againFile, endForRestart, RESTARTING, type RestartOptions } from "./docker-restart.ts";

/** A Docker daemon of our own: it is there from `startDockerDaemon` to `stop`, and leaves nothing behind. */
export interface DockerDaemon {
  /** As in DOCKER_HOST. */
  readonly host: string;
  /** How it is reached over the network, if that was asked for. */
  readonly remote: RemoteAccess | undefined;
  readonly images: Readonly<Record<TestImage, string>>;
  /** Makes an image from another's files with these lines of a Dockerfile, such as `ENTRYPOINT ["/bin/false"]`. */
  importImage(name: string, from: TestImage, changes: readonly string[]): Promise<string>;
  /** A request to its API, and the answer as JSON; `undefined` if there is none. */
  ask(method: string, path: string, body?: unknown): Promise<unknown>;
  /** Ends it and starts it again, on the same data. */
  restart(options: RestartOptions): Promise<void>;
  /** May be called twice. */
  stop(): Promise<void>;
}

export interface DaemonOptions {
  /** Podman speaks the same API. */
  readonly engine?: Engine;
  /** Where it keeps images and volumes, if that matters. */
  readonly dataRoot?: string;
  /** On our network, where registries of ours are, and not on one of its own. */
  readonly network?: "ours";
  /** Reached over the network, too, and it sees nothing of what is in these directories: as on another machine. */
  readonly remote?: { readonly hidden: readonly string[] };
}

/**
 * In namespaces of its own: its bridge, its packet filter, its mounts and all its processes are gone with it, also if
 * we are killed. The file system and the kernel are ours, as they are with a daemon that somebody has installed.
 */
export async function startDockerDaemon({
  engine = "docker",
  dataRoot,
  network,
  remote,
}: DaemonOptions = {}): Promise<DockerDaemon> {
  const dir = mkdtempSync(join(tmpdir(), `holdfast-${engine}-`));
  const command = engineCommand(engine, { dir, dataRoot: dataRoot ?? join(dir, "data") });
  const access = remote === undefined ? undefined : await remoteAccess(dir);
  const far = access && { access, hidden: remote?.hidden ?? [] };
  const launcher = far !== undefined || network === "ours" ? onOurNetwork : inNamespaces;
  const daemon = new Daemon({ dir, command, far, launcher });
  try {
    await daemon.start();
    return daemon;
  } catch (error) {
    await daemon.stop();
    throw error;
  }
}

class Daemon extends DaemonClient implements DockerDaemon {
  readonly #dir: string;
  readonly #command: EngineCommand;
  readonly #log: string;
  readonly #far: Far | undefined;
  readonly #launcher: readonly string[];
  #process: Bun.Subprocess | undefined;
  #stopped: Promise<void> | undefined;

  constructor(options: {
    dir: string;
    command: EngineCommand;
    far: Far | undefined;
    launcher: readonly string[];
  }) {
    const { dir, command, far, launcher } = options;
    super(`unix://${socketIn(dir)}`);
    this.#far = far;
    this.#launcher = launcher;
    this.#dir = dir;
    this.#command = command;
    this.#log = join(dir, "log");
  }

  get remote(): RemoteAccess | undefined {
    return this.#far?.access;
  }

  get #socket(): string {
    return socketIn(this.#dir);
  }

  async start(): Promise<void> {
    const { argv, env } = this.#command;
    const far = this.#far?.access.argv ?? [];
    this.#process = Bun.spawn([...this.#launcher, ...argv, ...far], {
      // Podman's monitor leaves a note where it is, of what ran out of memory.
      cwd: this.#dir,
      env: { ...process.env, ...env, AGAIN: againFile(this.#dir), HIDDEN: this.#far?.hidden.join(":") ?? "" },
      stdin: "ignore",
      stdout: Bun.file(this.#log),
      stderr: Bun.file(this.#log),
    });
    await this.#untilReady(this.#process);
    await this.importAll();
  }

  async restart(options: RestartOptions): Promise<void> {
    if (this.#process === undefined) throw new Error("the daemon was not started");
    await endForRestart(this.#dir, this.#process.pid, options);
    await this.#untilReady(this.#process);
  }

  stop(): Promise<void> {
    this.#stopped ??= this.#stop();
    return this.#stopped;
  }

  async #stop(): Promise<void> {
    await this.#thawAll().catch(() => {}); // a daemon that did not start has none
    this.#process?.kill("SIGKILL");
    await this.#process?.exited;
    // The end of its first process is the end of all others in its namespace, a moment later.
    await removeGroups(this.#command.groups);
    rmSync(this.#dir, { recursive: true, force: true });
  }

  /** What is frozen cannot be killed, and keeps the daemon's whole namespace from ending. */
  async #thawAll(): Promise<void> {
    const filters = encodeURIComponent(JSON.stringify({ status: ["paused"] }));
    const paused = (await this.ask("GET", `/containers/json?filters=${filters}`)) as { Id: string }[];
    for (const { Id } of paused) await this.ask("POST", `/containers/${Id}/unpause`);
  }

  async #untilReady(daemon: Bun.Subprocess): Promise<void> {
    while (daemon.exitCode === null) {
      if (existsSync(this.#socket) && (await this.#answers())) return;
      await Bun.sleep(20);
    }
    throw new Error(`the daemon did not start: ${readFileSync(this.#log, "utf8").slice(-2000)}`);
  }

  async #answers(): Promise<boolean> {
    try {
      return (await fetch("http://docker/_ping", { unix: this.#socket })).ok;
    } catch {
      return false; // its socket is there before it listens
    }
  }
}

/** What we start ends when we do. */
const withUs = ["setpriv", "--pdeathsig", "KILL"];

/** A shell as the first process reaps what Docker leaves; all of it ends when the program that we started does. */
const inNamespaces = [
  ...withUs,
  ...["unshare", "--mount", "--net", "--pid", "--fork", "--mount-proc", "--kill-child=SIGKILL"],
  ...["setpriv", "--pdeathsig", "KILL", "sh", "-c", RESTARTING, "sh"],
];

interface Far {
  readonly access: RemoteAccess;
  readonly hidden: readonly string[];
}

/** The same, but on our network; what is hidden from it is covered by something empty. */
const onOurNetwork = [
  ...withUs,
  ...["unshare", "--mount", "--pid", "--fork", "--mount-proc", "--kill-child=SIGKILL"],
  ...["setpriv", "--pdeathsig", "KILL", "sh", "-c"],
  ...['IFS=:; for dir in $HIDDEN; do mount -t tmpfs none "$dir"; done; "$@" & wait', "sh"],
];

/** A daemon that somebody uses may have groups of the same name: those with something in them stay. */
async function removeGroups(names: readonly string[]): Promise<void> {
  const ours = () => names.flatMap(groupsNamed);
  // What was killed leaves its group a moment later.
  for (let round = 0; round < 100 && ours().length > 0; round++) {
    for (const group of ours()) tryRemoveGroup(group);
    await Bun.sleep(10);
  }
}

function groupsNamed(name: string): string[] {
  const root = "/sys/fs/cgroup";
  if (!existsSync(root)) return [];
  const parents = [root, ...readdirSync(root).map((entry) => join(root, entry))];
  return parents.map((parent) => join(parent, name)).filter(existsSync);
}

/** From the inside out; one with processes that are just ending stays, for the next round. */
function tryRemoveGroup(group: string): void {
  try {
    for (const entry of readdirSync(group, { withFileTypes: true })) {
      if (entry.isDirectory()) tryRemoveGroup(join(group, entry.name));
    }
    rmdirSync(group);
  } catch (error) {
    const code = (error as NodeJS.ErrnoException).code ?? "";
    if (!["EBUSY", "ENOTEMPTY", "ENOENT"].includes(code)) throw error;
  }
}
