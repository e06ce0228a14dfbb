// Makes `dist`, which is what is published: the SDK as plain ES modules, and its types without any dependency.
// `npm pack` runs it.
import { mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join, relative, resolve } from "node:path";
import manifest from "./package.json" with { type: "json" };

const here = import.meta.dir;
const packages = resolve(here, "..");
const source = join(here, "src");
const dist = join(here, "dist");

/** What can be imported by name: the SDK itself, and it in the form of other libraries. */
const entries = ["index", "adapters/ai", "adapters/openai-agents", "adapters/computesdk"];

/** Files of the protocol that are free of zod, and go with the SDK as they are. */
const plainParts = new Set(
  ["errors", "file-batch", "log-frames", "screen-modes", "terminal-socket", "version"].map(
    (name) => `protocol/src/${name}.ts`,
  ),
);

if (import.meta.main) {
  rmSync(dist, { recursive: true, force: true });
  await bundle(dist);
  declareTypes();
}

/** What runs: one file, and beside it what only some need (a sync), which is loaded when it is called. */
export async function bundle(outdir: string): Promise<{ name: string; sizeBytes: number }[]> {
  const built = await Bun.build({
    entrypoints: entries.map((entry) => join(source, `${entry}.ts`)),
    outdir,
    naming: { entry: "[name].[ext]", chunk: "[name]-[hash].[ext]" },
    external: Object.keys(manifest.peerDependencies),
    target: "browser",
    format: "esm",
    splitting: true,
    minify: true,
  });
  return built.outputs.map(({ path, size }) => ({ name: relative(outdir, path), sizeBytes: size }));
}

/**
 * The declarations of our own files, as tsc makes them. The shapes on the wire are zod's to infer: they are written out
 * as plain types into one file, so that whoever installs the SDK needs no zod.
 */
function declareTypes(): void {
  const work = join(dist, "work");
  mkdirSync(work);
  const names = wireNames();
  writeFileSync(join(work, "wire.ts"), asValues(names));
  writeFileSync(join(work, "tsconfig.json"), JSON.stringify(tsconfig(work)));
  run([join(packages, "../node_modules/.bin/tsc"), "-p", work]);
  const made = (path: string) => readFileSync(join(work, "out", path), "utf8");
  write("protocol/wire.d.ts", asTypes(made("sdk/dist/work/wire.d.ts")));
  // From the entries on: what they do not lead to, nobody can name.
  const wanted = new Set(entries.map((entry) => `sdk/${entry}.js`));
  for (const path of wanted) {
    const [, folder, name] = /^(\w+)\/(.*)\.js$/.exec(path) ?? [];
    if (path === "protocol/wire.js") continue;
    const text = write(`${folder}/${name}.d.ts`, made(`${folder}/src/${name}.d.ts`));
    for (const [, to = ""] of text.matchAll(/(?:from |import\()"(\.[^"]+)"/g))
      wanted.add(join(dirname(path), to));
  }
  rmSync(work, { recursive: true });
}

/** What our files name of the protocol's inferred types. */
function wireNames(): string[] {
  const files = [...new Bun.Glob("**/*.ts").scanSync(source)]
    .filter((file) => !/\.test\.ts$|^testing\//.test(file))
    .map((file) => readFileSync(join(source, file), "utf8"));
  const parts = [...plainParts].map((file) => readFileSync(join(packages, file), "utf8"));
  const lists = [
    ...files.flatMap((text) => [...text.matchAll(/\{([^{}]*)\} from "@holdfast\/protocol"/g)]),
    ...parts.flatMap((text) => [
      ...text.matchAll(/import type \{([^{}]*)\} from "\.\/(?!errors)[\w-]+\.ts"/g),
    ]),
  ];
  const names = lists
    .flatMap(([, list = ""]) => list.split(","))
    .map((one) => one.trim().split(" as ")[0] ?? "");
  return [...new Set(names.filter((name) => name !== ""))].sort();
}

/** The compiler writes an inferred type out where a value has it, and nowhere else. */
function asValues(names: string[]): string {
  return [
    'import type * as wire from "../../../protocol/src/index.ts";',
    "declare function plain<T>(): T extends unknown ? { [K in keyof T]: T[K] } : never;",
    ...names.map((name) => `export const ${name} = plain<wire.${name}>();`),
  ].join("\n");
}

function asTypes(declared: string): string {
  return declared.replace(/^export declare const (\w+): /gm, "export type $1 = ");
}

function tsconfig(work: string) {
  return {
    extends: "../../../../tsconfig.json",
    compilerOptions: {
      noEmit: false,
      declaration: true,
      emitDeclarationOnly: true,
      stripInternal: true,
      outDir: join(work, "out"),
      rootDir: packages,
    },
    include: [],
    files: [
      ...entries.map((entry) => join(source, `${entry}.ts`)),
      join(work, "wire.ts"),
      ...[...plainParts].map((file) => join(packages, file)),
    ],
  };
}

/** With imports that name what is there: the flat types for the protocol's own, and `.js` as everybody expects. */
function write(path: string, declared: string): string {
  const folder = dirname(path);
  const wire = local(relative(folder, "protocol/wire.js"));
  const inProtocol = (name: string) => local(relative(folder, `protocol/${name}.js`));
  const isFlat = (name: string) =>
    folder === "protocol" && !plainParts.has(`protocol/src/${name.slice(2)}.ts`);
  const text = declared
    .replaceAll('"@holdfast/protocol"', `"${wire}"`)
    .replace(/"@holdfast\/protocol\/([\w-]+)"/g, (_, name: string) => `"${inProtocol(name)}"`)
    .replace(/"(\.{1,2}\/[^"]+)\.ts"/g, (_, name: string) => `"${isFlat(name) ? wire : `${name}.js`}"`);
  const to = join(dist, "types", path);
  mkdirSync(dirname(to), { recursive: true });
  writeFileSync(to, text);
  return text;
}

function local(path: string): string {
  return path.startsWith(".") ? path : `./${path}`;
}

function run(command: string[]): void {
  const { exitCode, stdout } = Bun.spawnSync(command, { stderr: "inherit" });
  if (exitCode === 0) return;
  process.stderr.write(stdout);
  process.exit(1);
}
