import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Sandbox } from "holdfast";
import { holdfastBin, type TestServer } from "../../e2e/harness.ts";
import type { Bench, Case, Dockers } from "../bench.ts";
import { bareSpawn } from "../floors.ts";
import type { Contender } from "../measure.ts";
import { fullPageCache } from "../memory.ts";

/** One large file and many small ones, both ways. */
export const files: Case = {
  name: "files",
  about: "Files",
  async run(bench) {
    using _cache = bench.isShort ? undefined : await fullPageCache({ atMostBytes: 8 * 2 ** 30 });
    const docker = await bench.docker();
    await inAndOut(bench, { where: "local", server: await bench.server(), docker });
    if (docker !== undefined) await inAndOut(bench, { where: "Docker", server: docker.server, docker });
  },
};

async function inAndOut(
  bench: Bench,
  { where, server, docker }: { where: string; server: TestServer; docker: Dockers | undefined },
): Promise<void> {
  const sandbox = await Sandbox.create({ network: "none" }, server.at);
  const dir = mkdtempSync(join(tmpdir(), "holdfast-bench-"));
  try {
    const container = docker && (await makeContainer(docker));
    const place = { bench, where, sandbox, dir, container, cp: cpOf(server) };
    await oneFile(place);
    await manyFiles(place);
  } finally {
    rmSync(dir, { recursive: true, force: true });
    await sandbox.delete({ force: true });
  }
}

interface Place {
  readonly bench: Bench;
  readonly where: string;
  readonly sandbox: Sandbox;
  readonly dir: string;
  readonly container: Container | undefined;
  /** `holdfast cp`, from one place to the other. */
  readonly cp: (from: string, to: string) => Promise<void>;
}

const rounds = { rounds: 3, warmUps: 1, atMostSeconds: 120 };

async function oneFile({ bench, where, sandbox, dir, container, cp }: Place): Promise<void> {
  const mib = bench.isShort ? 64 : 1024;
  const file = join(dir, "big");
  const back = join(dir, "back");
  const there = "/workspace/big";
  writeFileSync(file, Buffer.alloc(mib * 1024 * 1024, noise()));
  const floor: Contender = { role: "floor", name: "cp", run: () => bareSpawn(["cp", file, back]) };
  await bench.compare(
    `${where}: ${mib} MiB in`,
    [
      { role: "ours", name: "holdfast cp", run: () => cp(file, `${sandbox.id}:${there}`) },
      { role: "ours", name: "files.write", run: () => sandbox.files.write(there, Bun.file(file).stream()) },
      floor,
      container && { role: "peer", name: "docker cp", run: () => container.cp(file, `${container.id}:/big`) },
    ],
    rounds,
  );
  await bench.compare(
    `${where}: ${mib} MiB out`,
    [
      { role: "ours", name: "holdfast cp", run: () => cp(`${sandbox.id}:${there}`, back) },
      {
        role: "ours",
        name: "files.open",
        run: async () => Bun.write(back, new Response((await sandbox.files.open(there)).stream)),
      },
      floor,
      container && { role: "peer", name: "docker cp", run: () => container.cp(`${container.id}:/big`, back) },
    ],
    rounds,
  );
  await same(file, back);
  rmSync(file);
  rmSync(back);
}

async function manyFiles({ bench, where, sandbox, dir, container, cp }: Place): Promise<void> {
  const count = bench.isShort ? 500 : 10_000;
  const tree = join(dir, "tree");
  makeTree(tree, count);
  // What was copied goes before the next begins: half a million files at the end would take longer than all of it.
  const here = join(dir, "copy");
  const there = "/workspace/copy";
  const tidyHere = () => bareSpawn(["rm", "-rf", here]);
  const packed = `tar -C ${tree} -cf - . | (mkdir "$0" && tar -C "$0" -xf -)`;
  const floors: Contender[] = [
    { role: "floor", name: "cp -r", run: () => bareSpawn(["cp", "-r", tree, here]), tidy: tidyHere },
    { role: "floor", name: "tar to tar", run: () => bareSpawn(["sh", "-c", packed, here]), tidy: tidyHere },
  ];
  let copies = 0;
  await bench.compare(
    `${where}: ${count} files in`,
    [
      {
        role: "ours",
        name: "holdfast cp",
        run: () => cp(tree, `${sandbox.id}:${there}`),
        tidy: () => sandbox.files.delete(there, { recursive: true }),
      },
      ...floors,
      container && {
        role: "peer",
        name: "docker cp",
        run: () => container.cp(tree, `${container.id}:/t${copies++}`),
      },
    ],
    rounds,
  );
  await cp(tree, `${sandbox.id}:/workspace/whole`);
  await container?.cp(tree, `${container.id}:/whole`);
  await bench.compare(
    `${where}: ${count} files out`,
    [
      {
        role: "ours",
        name: "holdfast cp",
        run: () => cp(`${sandbox.id}:/workspace/whole`, here),
        tidy: async () => {
          await same(tree, here);
          await tidyHere();
        },
      },
      ...floors,
      container && {
        role: "peer",
        name: "docker cp",
        run: () => container.cp(`${container.id}:/whole`, here),
        tidy: tidyHere,
      },
    ],
    rounds,
  );
}

async function same(one: string, other: string): Promise<void> {
  await bareSpawn(["diff", "-rq", one, other]);
}

function makeTree(tree: string, count: number): void {
  const piece = noise();
  for (let i = 0; i < count; i++) {
    if (i % 100 === 0) mkdirSync(join(tree, `d${i}`), { recursive: true });
    writeFileSync(join(tree, `d${i - (i % 100)}`, `f${i}`), piece.subarray(0, 1024 + (i % 4096)));
  }
}

function noise(): Buffer {
  return crypto.getRandomValues(Buffer.alloc(65_536));
}

function cpOf(server: TestServer): Place["cp"] {
  const env = { ...process.env, HOLDFAST_URL: server.url, HOLDFAST_TOKEN: server.token };
  return async (from, to) => {
    const child = Bun.spawn([holdfastBin, "cp", from, to], { stdio: ["ignore", "ignore", "inherit"], env });
    if ((await child.exited) !== 0) throw new Error(`holdfast cp ${from} ${to} failed`);
  };
}

interface Container {
  readonly id: string;
  cp(from: string, to: string): Promise<unknown>;
}

async function makeContainer({ cli, image }: Dockers): Promise<Container> {
  const id = (await bareSpawn([...cli, "create", image, "true"])).trim();
  return { id, cp: (from, to) => bareSpawn([...cli, "cp", "-q", from, to]) };
}
