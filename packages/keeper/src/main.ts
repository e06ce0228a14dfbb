import { closeSync, fstatSync, readFileSync, unlinkSync } from "node:fs";
import { KeeperBoot } from "@holdfast/protocol/keeper-start";
import { becomeUndumpable } from "./engine/libc.ts";
import { prepareTags } from "./engine/oom-score.ts";
import { limitWork } from "./engine/process-limit.ts";
import { startKeeper } from "./keeper.ts";
import { printDisk, relay } from "./relay.ts";

/**
 * `keeper --boot-fd N NAME`: reads its boot message from descriptor N, so that the secret is in no argument and no
 * environment. `keeper --boot-file PATH NAME`: where whoever starts us can hand down no descriptor, from a file that we
 * remove before anything else runs here. NAME is the instance's, for whoever looks at the host's list of processes.
 * `keeper relay` and `keeper disk` are in relay.ts.
 */
async function main(argv: readonly string[]): Promise<void> {
  // First of all: to the first process of a namespace the kernel delivers only signals that it handles.
  const toldToEnd = new Promise<void>((resolve) => {
    for (const name of ["SIGTERM", "SIGINT"] as const) process.on(name, () => resolve());
  });
  // Nobody may end us by hanging up: the terminal or service that started the server is not our master.
  process.on("SIGHUP", () => {});
  // Our death is the death of everything in the sandbox: a fault in one request must not be the end of all others.
  process.on("uncaughtException", report);
  process.on("unhandledRejection", report);
  if (process.pid === 1) prepareTags();
  becomeUndumpable();
  const boot = readBoot(argv);
  limitWork(boot.maxProcesses);
  process.chdir("/");
  const keeper = await startKeeper(boot);
  void toldToEnd.then(() => keeper.shutdown({ cause: "signal" }));
  await keeper.over;
  process.exit(0);
}

function readBoot(argv: readonly string[]): KeeperBoot {
  const argumentOf = (option: string): string | undefined =>
    argv.includes(option) ? argv[argv.indexOf(option) + 1] : undefined;
  const file = argumentOf("--boot-file");
  if (file !== undefined) return readBootFile(file);
  const fd = Number(argumentOf("--boot-fd"));
  if (!Number.isInteger(fd))
    throw new Error("usage: keeper --boot-fd N NAME, or keeper --boot-file PATH NAME");
  fstatSync(fd); // says plainly that the descriptor is not open
  try {
    return KeeperBoot.parse(JSON.parse(readFileSync(fd, "utf8")));
  } finally {
    closeSync(fd);
  }
}

function readBootFile(path: string): KeeperBoot {
  const text = readFileSync(path, "utf8");
  // The work runs as the same user as we do: the secret may not lie there when it starts.
  unlinkSync(path);
  return KeeperBoot.parse(JSON.parse(text));
}

function report(error: unknown): void {
  process.stderr.write(
    `holdfast keeper: ${error instanceof Error ? (error.stack ?? error.message) : String(error)}\n`,
  );
}

async function dispatch([command, argument = "", ...rest]: readonly string[]): Promise<void> {
  if (command === "relay") {
    await relay(argument);
    process.exit(0);
  }
  if (command === "disk") return printDisk(argument);
  await main([command ?? "", argument, ...rest]);
}

dispatch(process.argv.slice(2)).catch((error: unknown) => {
  process.stderr.write(`holdfast keeper: ${error instanceof Error ? error.message : String(error)}\n`);
  process.exit(1);
});
