import { type ChildProcessWithoutNullStreams, spawn } from "node:child_process";
import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import { Duplex } from "node:stream";
import { HoldfastError } from "@holdfast/protocol";
import { listenAt, removeStale } from "./relay-socket.ts";
import type { Target, Transport } from "./transport.ts";

/** The first connection pays for the handshake, those of the next half minute use it. */
const SHARED_FOR_SECONDS = 30;
/** Of what ssh complains of. */
const SAID_BYTES = 2_000;

/**
 * A daemon on another machine, by the program ssh with the user's own configuration: it joins its streams with the
 * daemon's socket there, as docker's own programs do. Before it there is a unix socket, so that requests need not know.
 */
export class SshTransport implements Transport {
  readonly host: string;
  readonly #runDir: string;
  readonly #argv: readonly string[];
  #socket: Promise<string> | undefined;
  #failure: HoldfastError | undefined;

  constructor({ host, runDir }: { host: string; runDir: string }) {
    this.host = host;
    this.#runDir = runDir;
    const control = ["-o", "ControlMaster=auto", "-o", `ControlPersist=${SHARED_FOR_SECONDS}`];
    const shared = [...control, "-o", `ControlPath=${join(runDir, "ssh-%C")}`];
    // Nobody is there to be asked for a password or whether a key is right.
    const unattended = ["-o", "BatchMode=yes", "-o", "ConnectTimeout=20"];
    this.#argv = [...unattended, ...shared, ...destinationOf(host), "docker", "system", "dial-stdio"];
  }

  async target(): Promise<Target> {
    this.#socket ??= this.#listen().catch((error: unknown) => {
      this.#socket = undefined;
      throw error;
    });
    return { url: "http://docker", unix: await this.#socket, keepalive: true };
  }

  explain(): HoldfastError | undefined {
    return this.#failure;
  }

  async #listen(): Promise<string> {
    await mkdir(this.#runDir, { recursive: true, mode: 0o700 });
    await removeStale(this.#runDir);
    const path = join(this.#runDir, `${process.pid}-${Bun.hash(this.host).toString(36)}.sock`);
    await listenAt(path, async () => this.#dial());
    return path;
  }

  #dial(): Duplex {
    const child = spawn("ssh", this.#argv, { stdio: "pipe" });
    return streamOf(child, ({ code, said, answered }) => {
      // What breaks off after an answer is the daemon's doing, or the network's: nobody knows what was done.
      if (answered || code === 0 || code === null) this.#failure = undefined;
      else this.#failure = explained(this.host, { code, said });
    }).once("error", (cause) => {
      this.#failure = noProgram(cause);
    });
  }
}

interface End {
  readonly code: number | null;
  readonly said: string;
  readonly answered: boolean;
}

/** A program's standard streams as one. It ends when the program has: only then is it known why. */
function streamOf(child: ChildProcessWithoutNullStreams, onEnd: (end: End) => void): Duplex {
  let said = "";
  let answered = false;
  const stream = new Duplex({
    read: () => child.stdout.resume(),
    write: (bytes, encoding, done) => child.stdin.write(bytes, encoding, () => done()),
    final: (done) => child.stdin.end(() => done()),
    destroy: (error, done) => {
      child.kill();
      done(error);
    },
  });
  child.stdin.on("error", () => {}); // it has ended, of which we hear
  child.stdout.on("data", (bytes: Buffer) => {
    answered = true;
    if (!stream.push(bytes)) child.stdout.pause();
  });
  child.stderr.on("data", (bytes: Buffer) => {
    said = (said + bytes.toString("utf8")).slice(-SAID_BYTES);
  });
  child.once("error", (error) => stream.destroy(error));
  child.once("close", (code) => {
    onEnd({ code, said: said.trim(), answered });
    stream.push(null);
  });
  return stream;
}

/** As arguments of ssh: after `--` nothing of it can be taken for an option. */
function destinationOf(host: string): string[] {
  const [, user, name, port] =
    /^ssh:\/\/(?:([^@:/-][^@:/]*)@)?([^@:/-][^@:/]*)(?::(\d+))?\/?$/.exec(host) ?? [];
  if (name === undefined) {
    throw new HoldfastError("unsupported", `Docker cannot be reached by ${host}`, {
      hint: "An address by ssh is ssh://user@host or ssh://user@host:port. A password has no place in it: use a key.",
    });
  }
  return [
    ...(user === undefined ? [] : ["-l", user]),
    ...(port === undefined ? [] : ["-p", port]),
    ...["--", name],
  ];
}

/** 255 is ssh's own failure; every other code is that of the program on the other side. */
function explained(host: string, { code, said }: { code: number; said: string }): HoldfastError {
  const what = said === "" ? `ssh ended with ${code}` : said;
  return new HoldfastError("provider_unavailable", `no Docker daemon answers on ${host}: ${what}`, {
    hint: code === 255 ? sshHint(said, host) : dockerHint(code, said),
    started: "no",
  });
}

function sshHint(said: string, host: string): string {
  if (/host key verification failed/i.test(said))
    return `Its key is not known yet, or not the one that is known: log in once by hand (ssh ${host}).`;
  if (/permission denied/i.test(said))
    return "ssh must get in with a key and without a question: add yours to its authorized_keys, or to the agent.";
  return "See that ssh reaches it from here, as this user and without a question.";
}

function dockerHint(code: number, said: string): string {
  if (code === 127) return "The program docker must be on the other machine, in the path of a login by ssh.";
  if (/permission denied/i.test(said)) return "Its user there must be in the group docker.";
  return "The daemon there does not run, or the user's docker is set to another one: try `docker info` there.";
}

function noProgram(cause: unknown): HoldfastError {
  return new HoldfastError("provider_unavailable", "the program ssh cannot be started", {
    hint: "DOCKER_HOST is an ssh:// address: install ssh (Debian's package openssh-client).",
    cause,
    started: "no",
  });
}
