/**
 * Builds the command line as one program, `build/cli/holdfast`: it starts in a third of the time that its sources take.
 * The launcher (packages/cli/bin/holdfast) uses it as long as no source is newer, so nobody runs what they have changed
 * since. Its time is therefore that of the moment before the sources were read.
 */
import {
  chmodSync,
  existsSync,
  mkdirSync,
  readFileSync,
  renameSync,
  rmSync,
  utimesSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { hashOf, sourceFiles } from "./build-inputs.ts";

const root = join(import.meta.dir, "..");
const outDir = join(root, "build", "cli");
const program = join(outDir, "holdfast");
const stampFile = join(outDir, "stamp");
// The folder that somebody happens to stand in must not configure us.
const flags = [
  "--compile",
  "--bytecode",
  "--minify",
  "--no-compile-autoload-dotenv",
  "--no-compile-autoload-bunfig",
];

const before = new Date();
// One package too many costs a build, one too few a wrong program.
const stamp = hashOf({ files: sourceFiles("cli", "mcp", "sdk", "protocol"), settings: flags });
if (!existsSync(program) || !existsSync(stampFile) || readFileSync(stampFile, "utf8") !== stamp) build();
utimesSync(program, before, before);

function build(): void {
  process.stderr.write("building the command line\n");
  mkdirSync(outDir, { recursive: true });
  const draft = join(outDir, `.holdfast.${process.pid}`);
  try {
    const entry = join(root, "packages/cli/src/main.ts");
    const command = [process.execPath, "build", ...flags, entry, "--outfile", draft];
    const { exitCode, stderr } = Bun.spawnSync(command, { cwd: root, stdout: "ignore", stderr: "pipe" });
    if (exitCode !== 0) throw new Error(`bun build failed:\n${stderr.toString()}`);
    chmodSync(draft, 0o755);
    renameSync(draft, program);
  } finally {
    rmSync(draft, { force: true });
  }
  writeFileSync(stampFile, stamp);
}
