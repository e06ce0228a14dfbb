import { chmodSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { freePort } from "./docker-remote.ts";

/** A server of our own on the loopback device, and a program `ssh` that knows its key and has one that it accepts. */
export interface SshServer {
  readonly port: number;
  /** To be put before the path: `ssh` from there uses nothing of the user's own configuration. */
  readonly bin: string;
  stop(): Promise<void>;
}

/** Why there can be none here; `undefined` if there can. */
export function missingSsh(): string | undefined {
  if (process.getuid?.() !== 0) return "needs root to start a server of its own";
  const programs = { ssh: "openssh-client", "/usr/sbin/sshd": "openssh-server" };
  const missing = Object.entries(programs).filter(([program]) => Bun.which(program) === null);
  return missing.length === 0 ? undefined : `needs ${missing.map(([, name]) => name).join(", ")}`;
}

/** `env`: of every command that somebody runs there. */
export async function startSshServer({ env }: { env: Readonly<Record<string, string>> }): Promise<SshServer> {
  const dir = mkdtempSync(join(tmpdir(), "holdfast-sshd-"));
  const port = await freePort();
  for (const key of ["host", "user"])
    run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", join(dir, key)]);
  writeFileSync(join(dir, "sshd_config"), serverConfig(dir, port, env));
  const hostKey = readFileSync(join(dir, "host.pub"), "utf8");
  writeFileSync(join(dir, "known_hosts"), `[127.0.0.1]:${port} ${hostKey}`);
  const bin = join(dir, "bin");
  writeClient(bin, dir);
  mkdirSync("/run/sshd", { recursive: true }); // where sshd locks itself in; it starts nowhere without
  const log = Bun.file(join(dir, "log"));
  const argv = ["/usr/sbin/sshd", "-D", "-e", "-f", join(dir, "sshd_config")];
  const server = Bun.spawn([...withItsSessions, ...argv], { stdin: "ignore", stdout: "ignore", stderr: log });
  while (!(existsSync(join(dir, "log")) && (await log.text()).includes("listening"))) {
    if (server.exitCode !== null) throw new Error(`sshd did not start: ${await log.text()}`);
    await Bun.sleep(10);
  }
  const stop = async (): Promise<void> => {
    server.kill("SIGKILL");
    await server.exited;
    rmSync(dir, { recursive: true, force: true });
  };
  return { port, bin, stop };
}

/** Its sessions end with it, also if we are killed; it would leave them. */
const withItsSessions = [
  ...["setpriv", "--pdeathsig", "KILL"],
  ...["unshare", "--pid", "--fork", "--mount-proc", "--kill-child=SIGKILL"],
  ...["setpriv", "--pdeathsig", "KILL", "sh", "-c", '"$@" & wait', "sh"],
];

function serverConfig(dir: string, port: number, env: Readonly<Record<string, string>>): string {
  const variables = Object.entries(env).map(([name, value]) => `"${name}=${value}"`);
  writeFileSync(join(dir, "authorized_keys"), readFileSync(join(dir, "user.pub")));
  return `ListenAddress 127.0.0.1:${port}
HostKey ${join(dir, "host")}
AuthorizedKeysFile ${join(dir, "authorized_keys")}
PidFile ${join(dir, "pid")}
StrictModes no
UsePAM no
MaxSessions 100
LogLevel INFO
SetEnv ${variables.join(" ")}
`;
}

function writeClient(bin: string, dir: string): void {
  mkdirSync(bin);
  const known = `-o UserKnownHostsFile=${join(dir, "known_hosts")} -o IdentityFile=${join(dir, "user")}`;
  const script = `#!/bin/sh\nexec ${Bun.which("ssh")} -F /dev/null ${known} -o IdentitiesOnly=yes "$@"\n`;
  writeFileSync(join(bin, "ssh"), script);
  chmodSync(join(bin, "ssh"), 0o755);
}

function run(argv: readonly string[]): void {
  const { exitCode, stderr } = Bun.spawnSync([...argv]);
  if (exitCode !== 0) throw new Error(`${argv.join(" ")}: ${stderr}`);
}
