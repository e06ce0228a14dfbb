// `bun bench/files.ts`: 1 GiB and 10,000 small files, both ways, beside cp, tar and docker cp. `--small` for a quick look.
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type DockerDaemon, missingDocker, startDockerDaemon } from "@holdfast/testkit";
import { Sandbox } from "holdfast";
import { holdfastBin, TestServer } from "../e2e/harness.ts";
import { bareSpawn } from "./bare.ts";
import { interleaved } from "./measure.ts";

const isSmall = process.argv.includes("--small");
const MIB = isSmall ? 64 : 1024;
const FILES = isSmall ? 500 : 10_000;
const rounds = isSmall ? 1 : 3;
const say = (text: string) => process.stderr.write(`${text}\n`);

const dir = mkdtempSync(join(tmpdir(), "holdfast-bench-"));
const server = await TestServer.start();
const docker = missingDocker() === undefined ? await startDockerDaemon() : undefined;
try {
  makeInput();
  const sandbox = await Sandbox.create({ name: "bench", network: "none" }, server.at);
  const container = docker === undefined ? undefined : await makeContainer(docker);
  await oneFile(sandbox, container);
  await manyFiles(sandbox, container);
} finally {
  await docker?.stop();
  await server.dispose();
  rmSync(dir, { recursive: true, force: true });
}

async function oneFile(sandbox: Sandbox, container: Container | undefined): Promise<void> {
  const file = join(dir, "big");
  const back = join(dir, "back");
  const sdkIn = () => sandbox.files.write("/workspace/big", Bun.file(file).stream());
  const sdkOut = async () =>
    Bun.write(back, new Response((await sandbox.files.open("/workspace/big")).stream));
  await show(`${MIB} MiB in`, {
    "files.write": sdkIn,
    "holdfast cp": () => holdfast("cp", file, "bench:/workspace/big"),
    cp: () => bareSpawn(["cp", file, back]),
    ...(container && { "docker cp": () => container.cp(file, `${container.id}:/big`) }),
  });
  await show(`${MIB} MiB out`, {
    "files.open": sdkOut,
    "holdfast cp": () => holdfast("cp", "bench:/workspace/big", back),
    cp: () => bareSpawn(["cp", file, back]),
    ...(container && { "docker cp": () => container.cp(`${container.id}:/big`, back) }),
  });
}

async function manyFiles(sandbox: Sandbox, container: Container | undefined): Promise<void> {
  const tree = join(dir, "tree");
  let count = 0;
  // What was copied goes before the next begins: half a million files at the end would take longer than all of it.
  const here = join(dir, "copy");
  const there = "/workspace/copy";
  const tidy = async () => {
    await bareSpawn(["rm", "-rf", here]);
    if (await sandbox.files.exists(there)) await sandbox.files.delete(there, { recursive: true });
  };
  const packed = `tar -C ${tree} -cf - . | (mkdir "$0" && tar -C "$0" -xf -)`;
  const into: Contenders = {
    "holdfast cp": () => holdfast("cp", tree, `bench:${there}`),
    "cp -r": () => bareSpawn(["cp", "-r", tree, here]),
    "tar | tar": () => bareSpawn(["sh", "-c", packed, here]),
    ...(container && { "docker cp": () => container.cp(tree, `${container.id}:/t${count++}`) }),
  };
  await show(`${FILES} files in`, into, tidy);
  await holdfast("cp", tree, "bench:/workspace/whole");
  await container?.cp(tree, `${container.id}:/whole`);
  const out: Contenders = {
    "holdfast cp": () => holdfast("cp", "bench:/workspace/whole", here),
    "cp -r": () => bareSpawn(["cp", "-r", tree, here]),
    "tar | tar": () => bareSpawn(["sh", "-c", packed, here]),
    ...(container && { "docker cp": () => container.cp(`${container.id}:/whole`, here) }),
  };
  await show(`${FILES} files out`, out, tidy);
}

type Contenders = Record<string, () => Promise<unknown>>;

async function show(what: string, contenders: Contenders, tidy?: () => Promise<void>): Promise<void> {
  say(`${what} …`);
  const times = await interleaved(contenders, { rounds, warmUps: 1, ...(tidy && { tidy }) });
  const told = Object.entries(times).map(([name, { p50 }]) => `${name} ${Math.round(p50)} ms`);
  process.stdout.write(`${what}: ${told.join(", ")}\n`);
}

function makeInput(): void {
  const piece = crypto.getRandomValues(Buffer.alloc(65_536));
  writeFileSync(join(dir, "big"), Buffer.alloc(MIB * 1024 * 1024, piece));
  for (let i = 0; i < FILES; i++) {
    if (i % 100 === 0) mkdirSync(join(dir, "tree", `d${i}`), { recursive: true });
    writeFileSync(join(dir, "tree", `d${i - (i % 100)}`, `f${i}`), piece.subarray(0, 1024 + (i % 4096)));
  }
}

async function holdfast(...args: string[]): Promise<void> {
  const env = { ...process.env, HOLDFAST_URL: server.url, HOLDFAST_TOKEN: server.token };
  const child = Bun.spawn([holdfastBin, ...args], { stdio: ["ignore", "ignore", "inherit"], env });
  if ((await child.exited) !== 0) throw new Error(`holdfast ${args.join(" ")} failed`);
}

interface Container {
  readonly id: string;
  cp(from: string, to: string): Promise<void>;
}

async function makeContainer(daemon: DockerDaemon): Promise<Container> {
  const env = { ...process.env, DOCKER_HOST: daemon.host };
  const made = Bun.spawnSync(["docker", "create", daemon.images.debian, "true"], { env });
  if (made.exitCode !== 0) throw new Error(made.stderr.toString());
  const cp = async (from: string, to: string) => {
    const child = Bun.spawn(["docker", "cp", "-q", from, to], {
      stdio: ["ignore", "ignore", "inherit"],
      env,
    });
    if ((await child.exited) !== 0) throw new Error(`docker cp ${from} ${to} failed`);
  };
  return { id: made.stdout.toString().trim(), cp };
}
