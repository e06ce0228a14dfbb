import { expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { dirname, join, relative, resolve } from "node:path";

/** Who may import whom, and nothing else. Imports point one way; nobody imports `server`. */
const allowed: Record<string, readonly string[]> = {
  protocol: [],
  lines: [],
  core: ["protocol"],
  store: ["core", "protocol"],
  providers: ["core", "protocol"],
  keeper: ["protocol"],
  "keeper-link": ["lines", "protocol"],
  server: ["core", "keeper-link", "mcp", "protocol", "providers", "store"],
  sdk: ["lines", "protocol"],
  mcp: ["protocol", "sdk"],
  cli: ["mcp", "protocol", "sdk"],
  dashboard: ["sdk"],
  testkit: ["core", "protocol"],
};

const reasons: Record<string, string> = {
  protocol: "the wire contract stands on nothing",
  core: "decisions have no I/O, so they may know only the contract",
  keeper: "it runs inside the sandbox and knows nothing of the server",
  sdk: "it is published, and runs in browsers",
  mcp: "its tools are a client's: what they do, every client can",
};

/** Effects that must come through interfaces: time and chance are injected. To compare is none. */
const effects =
  /\b(Date\.now|new Date\(\)|Math\.random|setTimeout|setInterval|crypto\.|fetch\(|Bun\.(?!deepEquals)|process\.)/;

/** What of the runtime a keeper loads when it starts. Others take up to 1.7 MiB and 2 ms, of every sandbox. */
const smallModules = ["bun:ffi", "node:fs", "node:fs/promises", "node:os", "node:path"];

const packagesDir = resolve(import.meta.dir, "../packages");
const files = [...new Bun.Glob("*/{src,fixtures}/**/*.{ts,tsx}").scanSync(packagesDir)];

test("every import follows the map", () => {
  expect(files.length).toBeGreaterThan(50);
  const wrong = files.flatMap((file) => {
    const from = packageOf(file);
    const may = [from, ...(allowed[from] ?? []), ...(isForTests(file) ? ["testkit"] : [])];
    return importedPackages(file)
      .filter((to) => !may.includes(to))
      .map((to) => `${file} imports ${to}: ${reasons[from] ?? `${from} may import ${may.join(", ")}`}`);
  });
  expect(wrong).toEqual([]);
});

test("core and the lifecycle have no effects of their own, so that the simulation has them all", () => {
  const wrong = files
    .filter((file) => /^(core|server\/src\/lifecycle)\//.test(file) && !isForTests(file))
    .filter((file) => effects.test(read(file)));
  expect(wrong).toEqual([]);
});

test("a keeper starts without the runtime's large modules: they are imported where they are used", () => {
  const wrong = files
    .filter((file) => /^(keeper|protocol)\/src\//.test(file) && !isForTests(file))
    .flatMap((file) =>
      [...read(file).matchAll(/^import (?!type )[^;]*?from "((?:bun|node):[^"]+)"/gm)]
        .filter(([, module = ""]) => !smallModules.includes(module))
        .map(([, module]) => `${file} imports ${module}`),
    );
  expect(wrong).toEqual([]);
});

test("the lock file names no host", () => {
  expect(
    readFileSync(resolve(packagesDir, "../package-lock.json"), "utf8").match(/\w+:\/\/[^"]*/g) ?? [],
  ).toEqual([]);
});

function importedPackages(file: string): string[] {
  const paths = [...withoutTexts(read(file)).matchAll(/(?:from|import|import\()\s*"([^"]+)"/g)].map(
    (match) => match[1] ?? "",
  );
  return [...new Set(paths)].map((path) => toPackage(file, path)).filter((to) => to !== undefined);
}

/** What a program prints may be an example of how to import. */
function withoutTexts(code: string): string {
  return code.replace(/ `[^`]*\n(?:\\.|[^`\\])*`/g, "");
}

function toPackage(file: string, path: string): string | undefined {
  if (path === "holdfast" || path.startsWith("holdfast/")) return "sdk";
  if (path.startsWith("@holdfast/")) return path.split("/")[1];
  if (!path.startsWith(".")) return undefined;
  return packageOf(relative(packagesDir, join(packagesDir, dirname(file), path)));
}

/** Tests, and the helpers beside them. */
function isForTests(file: string): boolean {
  return /(\.test\.ts|\/test-[^/]*\.ts)$|\/fixtures\//.test(file);
}

function packageOf(file: string): string {
  return file.split("/")[0] ?? "";
}

function read(file: string): string {
  return readFileSync(join(packagesDir, file), "utf8");
}
