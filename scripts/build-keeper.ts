/**
 * Builds the keeper as a bundle that starts in any root file system: glibc, musl, or empty. The program is compiled
 * into one file, and the dynamic loader and libraries that it was made for lie beside it:
 *
 *   build/keeper/<hash>/ld.so --library-path <dir>/lib <dir>/keeper --boot-fd N NAME
 *
 * The hash is of everything that goes in, so an existing bundle is never built again and never changed. The three that
 * were used last are kept; `build/keeper/current` names the latest. Prints the bundle's path.
 */
import { chmodSync, closeSync, copyFileSync, mkdirSync, openSync, readSync } from "node:fs";
import { basename, join } from "node:path";
import { hashOf, sourceFiles } from "./build-inputs.ts";
import { makeBundle } from "./bundles.ts";

const root = join(import.meta.dir, "..");
const outDir = join(root, "build", "keeper");
const flags = [
  "--compile",
  "--bytecode",
  "--minify",
  // What the keeper imports when it is first needed stays out of its memory until then.
  "--splitting",
  "--format=esm",
  // Most of what runs at its start never runs again: to compile that takes more time and memory than it saves. The engine
  // takes it back once there is work.
  "--compile-jit-policy=10",
  // Hostile files may lie in the working directory: the compiled keeper reads no .env and no bunfig.toml.
  "--no-compile-autoload-dotenv",
  "--no-compile-autoload-bunfig",
];

const loader = interpreterOf(process.execPath);
const libraries = librariesOf(process.execPath);
const files = [...sourceFiles("keeper", "protocol"), loader, ...libraries];
process.stdout.write(`${await makeBundle(outDir, hashOf({ files, settings: flags }), build)}\n`);

function build(draft: string): void {
  const started = performance.now();
  progress("building the keeper");
  mkdirSync(join(draft, "lib"));
  compile(join(draft, "keeper"));
  progress(`adding ${basename(loader)} and ${libraries.length} libraries`);
  add(loader, join(draft, "ld.so"));
  for (const library of libraries) add(library, join(draft, "lib", basename(library)));
  for (const dir of [draft, join(draft, "lib")]) chmodSync(dir, 0o755);
  progress(`built in ${Math.round(performance.now() - started)} ms`);
}

function compile(outfile: string): void {
  const entry = join(root, "packages/keeper/src/main.ts");
  const { exitCode, stderr } = Bun.spawnSync(
    [process.execPath, "build", ...flags, entry, "--outfile", outfile],
    { cwd: root, stdout: "ignore", stderr: "pipe" },
  );
  if (exitCode !== 0) throw new Error(`bun build failed:\n${stderr.toString()}`);
  chmodSync(outfile, 0o755);
}

function add(from: string, to: string): void {
  copyFileSync(from, to);
  chmodSync(to, 0o755);
}

/** The dynamic loader that a program asks for: the segment PT_INTERP of a 64 bit little endian ELF file. */
function interpreterOf(program: string): string {
  const head = readHead(program);
  const [table, entrySize, entries] = [
    Number(head.readBigUInt64LE(32)),
    head.readUInt16LE(54),
    head.readUInt16LE(56),
  ];
  for (let at = table; at < table + entries * entrySize; at += entrySize) {
    if (head.readUInt32LE(at) !== 3) continue;
    const offset = Number(head.readBigUInt64LE(at + 8));
    const size = Number(head.readBigUInt64LE(at + 32));
    return head.toString("utf8", offset, offset + size - 1);
  }
  throw new Error(
    `${program} names no dynamic loader: this bun is statically linked, which is not supported`,
  );
}

function readHead(program: string): Buffer {
  const head = Buffer.alloc(64 * 1024);
  const fd = openSync(program, "r");
  readSync(fd, head, 0, head.length, 0);
  closeSync(fd);
  return head;
}

/** Where the loader finds each library, by its own account. */
function librariesOf(program: string): string[] {
  const { stdout, exitCode } = Bun.spawnSync([loader, "--list", program]);
  if (exitCode !== 0) throw new Error(`${loader} cannot list the libraries of ${program}`);
  return [...stdout.toString().matchAll(/=> (\/\S+)/g)].map((match) => match[1] ?? "").sort();
}

function progress(text: string): void {
  process.stderr.write(`${text}\n`);
}
