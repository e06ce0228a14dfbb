import { afterAll, expect, test } from "bun:test";
import { chmodSync, chownSync, mkdtempSync, rmSync, utimesSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Check } from "@holdfast/core";
import { readConfig } from "./config.ts";

// The real program on the real machine, from which one thing is taken away at a time. To take needs the rights of root.
const asRoot = process.getuid?.() === 0;
const doctor = join(import.meta.dir, "doctor.ts");
const PLAIN_UID = 64_124;

const home = mkdtempSync(join(tmpdir(), "holdfast-doctor-"));
chmodSync(home, 0o777);
const port = 20_000 + (process.pid % 20_000);
const taken = Bun.serve({ port: 0, hostname: "127.0.0.1", fetch: () => new Response("something else") });
const socket = join(home, "docker.sock");
const listening = Bun.listen({ unix: socket, socket: { data: () => {} } });
chmodSync(socket, 0o600);
afterAll(async () => {
  await taken.stop(true);
  listening.stop(true);
  rmSync(home, { recursive: true, force: true });
});

interface Case {
  taken: string;
  /** Runs before the doctor, in mount namespaces of its own, with DIR as the data dir. */
  script?: string;
  prepare?: (dataDir: string) => void;
  as?: "root" | "plain";
  /** What in the way of its namespaces is before it. */
  under?: string[];
  args?: string[];
  env?: Record<string, string>;
  provider?: string;
  name: string;
  detail: RegExp;
  remedy: RegExp;
  /** Whether sandboxes can be had all the same. */
  usable?: true;
}

const noNamespaces = [
  ...["unshare", "--user", "--map-current-user", "--keep-caps", "sh", "-c"],
  'echo 0 > /proc/sys/user/max_user_namespaces; exec setpriv --ambient-caps=-all --inh-caps=-all "$@"',
  "sh",
];
/** As on Ubuntu; this machine's kernel need not have AppArmor. */
const withAppArmor = `cp -r /proc/sys/kernel "$DIR/kernel" 2>/dev/null
echo 1 > "$DIR/kernel/apparmor_restrict_unprivileged_userns"; mount --bind "$DIR/kernel" /proc/sys/kernel`;
const noDocker = { DOCKER_HOST: `unix://${join(home, "none.sock")}` };

const cases: Case[] = [
  {
    taken: "user namespaces",
    as: "plain",
    under: noNamespaces,
    provider: "local",
    name: "user namespaces",
    detail: /No space left on device|namespace/i,
    remedy: /^sudo sysctl user\.max_user_namespaces=15000$/,
  },
  {
    taken: "the right to namespaces, by the kernel's settings",
    as: "plain",
    under: noNamespaces,
    name: "kernel settings",
    detail: /^user\.max_user_namespaces is 0$/,
    remedy: /^sudo sysctl user\.max_user_namespaces=15000$/,
  },
  {
    taken: "user namespaces, by AppArmor",
    as: "plain",
    script: withAppArmor,
    under: noNamespaces,
    provider: "local",
    name: "user namespaces",
    detail: /No space left on device|namespace/i,
    remedy:
      /AppArmor.* profile for \/usr\/bin\/bwrap.* sysctl kernel\.apparmor_restrict_unprivileged_userns=0$/,
  },
  {
    taken: "AppArmor's leave, by the kernel's settings",
    script: withAppArmor,
    name: "kernel settings",
    detail: /^kernel\.apparmor_restrict_unprivileged_userns is 1$/,
    remedy: /^sudo sysctl kernel\.apparmor_restrict_unprivileged_userns=0$/,
  },
  {
    taken: "bubblewrap",
    script: 'mount --bind /dev/null "$(command -v bwrap)"',
    provider: "local",
    name: "bwrap",
    detail: /^is not installed$/,
    remedy: /apt install bubblewrap/,
  },
  {
    taken: "/dev/net/tun",
    script: "mount -t tmpfs tmpfs /dev/net",
    provider: "local",
    name: 'network "full"',
    detail: /tun is not there/,
    remedy: /^sudo modprobe tun$/,
    usable: true,
  },
  {
    taken: "/dev/net/tun, from a plain user",
    script: "mount -t tmpfs tmpfs /dev/net; mknod -m 600 /dev/net/tun c 10 200",
    as: "plain",
    provider: "local",
    name: 'network "full"',
    detail: /may not be opened by a plain user/,
    remedy: /^sudo chmod 0666 \/dev\/net\/tun$/,
    usable: true,
  },
  {
    taken: "control groups",
    script: "mount -t tmpfs -o ro tmpfs /sys/fs/cgroup",
    provider: "local",
    name: "limits",
    detail: /no cgroup controller/,
    remedy: /^Mount the cgroup file system writable$/,
    usable: true,
  },
  {
    taken: "control groups, from a plain user",
    as: "plain",
    provider: "local",
    name: "limits",
    detail: /a plain user may not make control groups here/,
    remedy: /loginctl enable-linger/,
    usable: true,
  },
  {
    taken: "room on the disk",
    script: 'mount -t tmpfs -o size=4m tmpfs "$DIR"; head -c 8m /dev/zero > "$DIR/full" 2>/dev/null || true',
    name: "disk",
    detail: /0 MiB of disk are free, and 2048 MiB must be/,
    remedy: /^Make room \(df -h .*--data-dir DIR.*--min-free-disk/,
  },
  {
    taken: "inodes of the disk",
    script: 'mount -t tmpfs -o size=3g,nr_inodes=100 tmpfs "$DIR"; touch "$DIR"/f{1..99} 2>/dev/null || true',
    name: "disk",
    detail: /inodes are free, and 5 must be/,
    remedy: /df -i/,
  },
  {
    taken: "the Docker daemon",
    args: ["--providers", "docker"],
    env: noDocker,
    provider: "docker",
    name: "docker",
    detail: /no Docker daemon answers/,
    remedy: /systemctl start docker/,
  },
  {
    taken: "the right to Docker's socket",
    as: "plain",
    args: ["--providers", "docker"],
    env: { DOCKER_HOST: `unix://${socket}` },
    provider: "docker",
    name: "docker",
    detail: /may not use Docker's socket/,
    remedy: /usermod -aG docker/,
  },
  {
    taken: "the port",
    args: ["--port", String(taken.port)],
    name: "port",
    detail: new RegExp(`127\\.0\\.0\\.1:${taken.port} is taken by .* \\(pid ${process.pid}\\)`),
    remedy: /--port PORT, or 0 for any/,
  },
  {
    taken: "the right to a low port",
    as: "plain",
    // What the machine's own setting may allow is forbidden in a network of its own.
    under: ["unshare", "--user", "--map-current-user", "--net"],
    args: ["--port", "80", "--providers", "docker"],
    env: noDocker,
    name: "port",
    detail: /a plain user may not listen on port 80|is no address/,
    remedy: /--port 4750|--host/,
  },
  {
    taken: "the data dir",
    as: "plain",
    prepare: (dataDir) => chownSync(dataDir, 0, 0),
    name: "data dir",
    detail: /may not be written: it belongs to user 0, and we are 64124/,
    remedy: /--data-dir DIR or HOLDFAST_DATA_DIR/,
  },
  {
    taken: "the token's secrecy",
    prepare: (dataDir) => writeFileSync(join(dataDir, "token"), "secret\n", { mode: 0o644 }),
    name: "token",
    detail: /may be read by others/,
    remedy: /chmod 600 .*holdfast token rotate/,
    usable: true,
  },
  {
    taken: "the right to the token",
    as: "plain",
    prepare: (dataDir) => writeFileSync(join(dataDir, "token"), "secret\n", { mode: 0o600 }),
    name: "token",
    detail: /may not be read: it belongs to user 0/,
    remedy: /HOLDFAST_TOKEN/,
  },
  {
    taken: "the right time",
    prepare: (dataDir) => {
      writeFileSync(join(dataDir, "lock"), "");
      utimesSync(join(dataDir, "lock"), new Date(), new Date(Date.now() + 86_400_000));
    },
    name: "clock",
    detail: /but the data dir was last written at/,
    remedy: /timedatectl set-ntp true/,
    usable: true,
  },
];

test.if(asRoot)("a machine that has everything: as root and as a plain user", async () => {
  for (const as of ["root", "plain"] as const) {
    const { code, report, stderr } = await examined({ as, env: noDocker });
    expect({ as, code, stderr, report }).toMatchObject({
      ...{ as, code: 0, stderr: "" },
      report: { ok: true, default: "local" },
    });
    const user = report.checks.find(({ name }) => name === "user")?.detail;
    expect(user).toMatch(as === "root" ? /^root: every sandbox runs as a user of its own/ : /plain user/);
  }
});

test.if(asRoot).each(cases.map((one) => [one.taken, one] as const))("without %s", async (_, one) => {
  const { code, report, stderr } = await examined(one);
  const check = report.checks.find(({ provider, name }) => name === one.name && provider === one.provider);
  expect({ stderr, code, check }).toEqual({
    stderr: "",
    code: one.usable ? 0 : 1,
    check: {
      ...(one.provider !== undefined && { provider: one.provider }),
      name: one.name,
      ok: false,
      required: expect.any(Boolean),
      detail: expect.stringMatching(one.detail),
      remedy: expect.stringMatching(one.remedy),
    },
  });
});

test("a port of 0, and one that a Holdfast server has, are no fault", async () => {
  const server = Bun.serve({
    ...{ port: 0, hostname: "127.0.0.1" },
    fetch: () => new Response("{}", { headers: { "Holdfast-Request-Id": "req_1" } }),
  });
  const { report } = await examined({ args: ["--port", String(server.port)], env: noDocker });
  await server.stop(true);
  expect(report.checks.find(({ name }) => name === "port")).toMatchObject({
    ok: true,
    detail: expect.stringContaining("a Holdfast server listens"),
  });
});

test.each([
  [["--nope"], "error: Unknown option '--nope'\nhint: holdfast doctor --help\n"],
  [["-o", "xml"], 'error: --output must be table or json, not "xml"\nhint: holdfast doctor --help\n'],
  [["--providers", "vm"], 'error: --providers: there is no provider "vm"\nhint: holdfast doctor --help\n'],
])("called wrongly: %p", async (args, stderr) => {
  expect(await run([process.execPath, doctor, ...args], {})).toEqual({ code: 2, stdout: "", stderr });
});

test.each(["serve", "doctor"])("%s --help has examples, and each is understood", async (name) => {
  const program = name === "serve" ? join(import.meta.dir, "main.ts") : doctor;
  const { stdout, code } = await run([process.execPath, program, "--help"], {});
  expect([code, stdout]).toEqual([0, expect.stringContaining("\nOptions:\n")]);
  const examples = stdout.match(new RegExp(`^ {2}holdfast ${name}.*$`, "gm")) ?? [];
  expect(examples.length).toBeGreaterThanOrEqual(3);
  for (const example of examples) {
    const words = (example.trim().split(/ {2,}/)[0] ?? "").split(" ").slice(2);
    const ownToDoctor = words.filter((word) => !["-o", "json"].includes(word));
    expect(() => readConfig(name === "doctor" ? ownToDoctor : words, {})).not.toThrow();
  }
});

interface Report {
  ok: boolean;
  default: string | null;
  checks: (Check & { provider?: string })[];
}

async function examined(one: Partial<Case>): Promise<{ code: number; stderr: string; report: Report }> {
  const { as = "root", under = [], script = "true", args = [], env = {} } = one;
  const dataDir = mkdtempSync(join(home, "data-"));
  chmodSync(dataDir, 0o711);
  if (as === "plain") chownSync(dataDir, PLAIN_UID, PLAIN_UID);
  one.prepare?.(dataDir);
  const id = String(PLAIN_UID);
  const asUser = as === "root" ? [] : ["setpriv", "--reuid", id, "--regid", id, "--clear-groups"];
  const itself = [process.execPath, doctor, "-o", "json", "--data-dir", dataDir];
  const command = [
    ...["unshare", "--mount", "bash", "-c", `${script}\nexec "$@"`, "bash"],
    ...[
      ...asUser,
      ...under,
      ...itself,
      ...(args.includes("--port") ? [] : ["--port", String(port)]),
      ...args,
    ],
  ];
  const { stdout, ...rest } = await run(command, { DIR: dataDir, ...env });
  return { ...rest, report: JSON.parse(stdout || `{"checks":[]}`) };
}

async function run(
  command: string[],
  env: Record<string, string>,
): Promise<{ code: number; stdout: string; stderr: string }> {
  const child = Bun.spawn(command, {
    ...({ stdin: "ignore", stdout: "pipe", stderr: "pipe" } as const),
    cwd: "/",
    env: { PATH: process.env.PATH ?? "", HOME: home, ...env },
  });
  const [stdout, stderr, code] = await Promise.all([
    new Response(child.stdout).text(),
    new Response(child.stderr).text(),
    child.exited,
  ]);
  return { code, stdout, stderr };
}
