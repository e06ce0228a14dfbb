/**
 * Builds the dashboard into files that the server sends as they are, each also compressed:
 *
 *   build/dashboard/<hash>/index.html, main-<hash>.js, main-<hash>.css, icon.svg
 *
 * The hash is of everything that goes in, so what is built already is not built again; `build/dashboard/current` names
 * the latest. Prints its path.
 */
import {
  cpSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  utimesSync,
  writeFileSync,
} from "node:fs";
import { join, relative } from "node:path";
import { brotliCompressSync, constants, gzipSync } from "node:zlib";
import { removeOldBundles } from "./old-bundles.ts";

const root = join(import.meta.dir, "..");
const source = join(root, "packages/dashboard/src");
const outDir = join(root, "build", "dashboard");

const hash = hashOfInputs();
const built = join(outDir, hash);
const isNew = !existsSync(built);
if (isNew) await build();
makeCurrent();
if (isNew) removeOldBundles(outDir, hash);
process.stdout.write(`${built}\n`);

async function build(): Promise<void> {
  const started = performance.now();
  const temporary = join(outDir, `.${hash}.${process.pid}`);
  mkdirSync(temporary, { recursive: true });
  try {
    await bundle(temporary);
    for (const name of readdirSync(temporary)) compress(join(temporary, name));
    moveInto(temporary, built);
  } finally {
    rmSync(temporary, { recursive: true, force: true });
  }
  process.stderr.write(`built the dashboard ${hash} in ${Math.round(performance.now() - started)} ms\n`);
}

async function bundle(outdir: string): Promise<void> {
  const { outputs } = await Bun.build({
    entrypoints: [join(source, "main.tsx")],
    outdir,
    target: "browser",
    minify: true,
    naming: "[name]-[hash].[ext]",
    define: { "process.env.NODE_ENV": '"production"' },
  });
  const names = outputs.map(({ path }) => relative(outdir, path));
  const [script, styles] = [
    names.find((name) => /^main-.*\.js$/.test(name)),
    names.find((name) => name.endsWith(".css")),
  ];
  if (script === undefined || styles === undefined) throw new Error(`the build made only ${names}`);
  const page = readFileSync(join(source, "index.html"), "utf8");
  writeFileSync(
    join(outdir, "index.html"),
    page.replace("main.css", `/assets/${styles}`).replace("main.js", `/assets/${script}`),
  );
  cpSync(join(source, "icon.svg"), join(outdir, "icon.svg"));
}

/** A little larger than it could be, and built in a third of the time. */
function compress(path: string): void {
  const bytes = readFileSync(path);
  writeFileSync(`${path}.br`, brotliCompressSync(bytes, { params: { [constants.BROTLI_PARAM_QUALITY]: 9 } }));
  writeFileSync(`${path}.gz`, gzipSync(bytes, { level: 9 }));
}

/** Another build of the same hash may have been faster: its result is as good as ours. */
function moveInto(from: string, to: string): void {
  try {
    renameSync(from, to);
  } catch (error) {
    if (!existsSync(to)) throw error;
  }
}

function makeCurrent(): void {
  const path = join(outDir, "current");
  if (existsSync(path) && readFileSync(path, "utf8") === `${hash}\n`) return;
  utimesSync(built, new Date(), new Date()); // when it was last wanted: old-bundles.ts goes by it
  const temporary = `${path}.${process.pid}`;
  writeFileSync(temporary, `${hash}\n`);
  renameSync(temporary, path);
}

function hashOfInputs(): string {
  const hasher = new Bun.CryptoHasher("sha256");
  hasher.update(Bun.version);
  const files = [...sourceFiles(), join(root, "package-lock.json"), import.meta.path];
  for (const file of files) {
    const bytes = readFileSync(file);
    hasher.update(`\0${relative(root, file)}\0${bytes.length}\0`).update(bytes);
  }
  return hasher.digest("hex").slice(0, 16);
}

function sourceFiles(): string[] {
  return ["packages/dashboard/src", "packages/sdk/src", "packages/protocol/src"].flatMap((dir) =>
    readdirSync(join(root, dir), { recursive: true, withFileTypes: true })
      .filter((entry) => entry.isFile() && !entry.name.includes(".test."))
      .map((entry) => join(entry.parentPath, entry.name))
      .sort(),
  );
}
