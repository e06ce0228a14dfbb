/**
 * Builds the dashboard into files that the server sends as they are, each also compressed:
 *
 *   build/dashboard/<hash>/index.html, main-<hash>.js, main-<hash>.css, icon.svg
 *
 * The hash is of everything that goes in, so what is built already is not built again; `build/dashboard/current` names
 * the latest. Prints its path.
 */
import { cpSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join, relative } from "node:path";
import { brotliCompressSync, constants, gzipSync } from "node:zlib";
import { hashOf, sourceFiles } from "./build-inputs.ts";
import { makeBundle } from "./bundles.ts";

const root = join(import.meta.dir, "..");
const source = join(root, "packages/dashboard/src");
const outDir = join(root, "build", "dashboard");

const files = [...sourceFiles("dashboard", "sdk", "protocol"), import.meta.path];
process.stdout.write(`${await makeBundle(outDir, hashOf({ files, settings: [] }), build)}\n`);

async function build(draft: string): Promise<void> {
  const started = performance.now();
  await bundle(draft);
  for (const name of readdirSync(draft)) compress(join(draft, name));
  process.stderr.write(`built the dashboard in ${Math.round(performance.now() - started)} ms\n`);
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
