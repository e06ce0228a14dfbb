// Sets up everything that `npm start` and `npm test` need, and does nothing that is done already.
// Plain JavaScript without dependencies: it runs before any package is installed.
import { spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

const root = fileURLToPath(new URL("..", import.meta.url));
const forTests = process.argv.includes("--tests");
const forBench = process.argv.includes("--bench");

// The program that is needed, and the Debian package that has it.
const packages = { bwrap: "bubblewrap", pasta: "passt", ip: "iproute2" };
// What only the tests look at the world with.
const testPackages = {
  busybox: "busybox-static",
  python3: "python3-minimal",
  ps: "procps",
  git: "git",
  vim: "vim-tiny",
  less: "less",
  zsh: "zsh",
  fish: "fish",
  tmux: "tmux",
  strace: "strace",
  faketime: "faketime",
  initdb: "postgresql",
  dockerd: "docker.io",
  runsc: "runsc",
  podman: "podman",
  chromium: "chromium",
  newuidmap: "uidmap",
  slirp4netns: "slirp4netns",
  "docker-registry": "docker-registry",
  sshd: "openssh-server",
  ssh: "openssh-client",
  openssl: "openssl",
  cc: "build-essential",
};
// What benchmarks compare with, where it can be had: the floor in C, and peers.
const benchPackages = {
  cc: "build-essential",
  dockerd: "docker.io",
  sshd: "openssh-server",
  ssh: "openssh-client",
  socat: "socat",
  rg: "ripgrep",
  "mkfs.xfs": "xfsprogs",
  initdb: "postgresql",
};

installNpmPackages();
installDebianPackages({
  ...packages,
  ...(forTests && testPackages),
  ...(forBench && (mayInstall() ? benchPackages : { cc: benchPackages.cc })),
});
build("build-keeper.ts");
build("build-cli.ts");
build("build-dashboard.ts");

function installNpmPackages() {
  const stampFile = join(root, "node_modules", ".holdfast-stamp");
  const stamp = createHash("sha256")
    .update(readFileSync(join(root, "package-lock.json")))
    .digest("hex");
  if (existsSync(stampFile) && readFileSync(stampFile, "utf8") === stamp) return;
  say("Installing npm packages (once, about 15 s) …");
  // Not `npm ci`: it insists on packages for every platform that a lock file names, also where a registry lacks them.
  run("npm", ["install", "--no-save", "--no-audit", "--no-fund", "--loglevel", "error"]);
  writeFileSync(stampFile, stamp);
}

/** @param {Record<string, string>} wanted */
function installDebianPackages(wanted) {
  const missing = Object.keys(wanted)
    .filter((program) => !isInstalled(program))
    .map((program) => wanted[program] ?? "");
  if (missing.length === 0) return;
  const install = ["apt-get", "install", "-y", "--no-install-recommends", ...missing];
  if (!mayInstall()) {
    const command = isInstalled("apt-get")
      ? `sudo ${install.join(" ")}`
      : `your system's packages for: ${missing.join(" ")}`;
    fail(
      `These programs are needed and missing: ${missing.join(", ")}.`,
      `install them and start again:\n\n  ${command}\n`,
    );
  }
  say(`Installing Debian packages: ${missing.join(", ")} …`);
  run("apt-get", ["update", "-qq"]);
  run("env", ["DEBIAN_FRONTEND=noninteractive", ...install, "-qq"]);
}

function mayInstall() {
  return process.getuid?.() === 0 && isInstalled("apt-get");
}

/** @param {string} script */
function build(script) {
  // It says on stderr what it does, if anything; what it may print for programs nobody reads here.
  run(join(root, "node_modules", ".bin", "bun"), [join(root, "scripts", script)], "ignore");
}

/** Debian keeps the programs of PostgreSQL outside of the path, and a plain user's path may lack sbin. @param {string} program */
function isInstalled(program) {
  const look = 'PATH="$PATH:/usr/sbin:$(echo /usr/lib/postgresql/*/bin | tr " " ":")"; command -v "$1"';
  return spawnSync("sh", ["-c", look, "sh", program]).status === 0;
}

/** @param {string} program @param {string[]} args @param {"inherit" | "ignore"} stdout */
function run(program, args, stdout = "inherit") {
  const { status, error } = spawnSync(program, args, { cwd: root, stdio: ["ignore", stdout, "inherit"] });
  if (status === 0) return;
  fail(
    `\`${program} ${args.join(" ")}\` failed${error ? `: ${error.message}` : ""}.`,
    "see its output above",
  );
}

/** @param {string} text */
function say(text) {
  process.stdout.write(`${text}\n`);
}

/** @param {string} message @param {string} hint */
function fail(message, hint) {
  process.stderr.write(`error: ${message}\nhint: ${hint}\n`);
  process.exit(1);
}
