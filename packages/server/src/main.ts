import { join } from "node:path";
import type { Provider } from "@holdfast/core";
import { HoldfastError } from "@holdfast/protocol";
import { createLocalProvider } from "@holdfast/providers";
import { SqliteStore } from "@holdfast/store";
import { createApp } from "./app.ts";
import { goodbye, welcome } from "./banner.ts";
import { systemClock } from "./clock.ts";
import { type Config, readConfig, usage } from "./config.ts";
import { holdDataDir } from "./data-dir.ts";
import { newInstallationId } from "./ids.ts";
import { currentKeeperBundle } from "./keeper-bundle.ts";
import { Keepers } from "./keepers.ts";
import { listen } from "./listen.ts";
import { createLog, type Log } from "./log.ts";
import { Reconciler } from "./reconciler.ts";
import { Sandboxes } from "./sandboxes.ts";
import { loadToken } from "./token.ts";

/** Calls under way at the end get this long; a command itself goes on in its keeper. */
const SHUTDOWN_GRACE_MS = 2_000;
/**
 * To find a hundred sandboxes again takes a part of it. One that hangs, or whose large disk is being removed, is
 * finished while the others are served already.
 */
const ADOPTION_PATIENCE_MS = 3_000;

try {
  const config = readConfig(process.argv.slice(2), process.env);
  if (config === "help") process.stdout.write(usage);
  else await serve(config);
} catch (error) {
  if (!(error instanceof HoldfastError)) throw error;
  process.stderr.write(`error: ${error.message}\n${error.hint === undefined ? "" : `hint: ${error.hint}\n`}`);
  process.exit(error.code === "invalid_argument" ? 2 : 1);
}

/** The only place that names concrete parts. */
async function serve(config: Config): Promise<void> {
  const log = createLog({ level: config.logLevel, forPerson: process.stderr.isTTY === true });
  const dataDir = holdDataDir(config.dataDir);
  const token = loadToken(config.dataDir);
  const store = new SqliteStore({
    path: join(config.dataDir, "holdfast.db"),
    newId: newInstallationId,
    now: systemClock.now,
  });
  const local = createLocalProvider({ dataDir: config.dataDir, keeperBundle: currentKeeperBundle() });
  await refuseIfUnusable(local, log);

  const closing = new AbortController();
  const providers = new Map<string, Provider>([[local.kind, local]]);
  const keepers = new Keepers();
  const parts = { store, providers, keepers, clock: systemClock };
  const reconciler = new Reconciler({ ...parts, random: Math.random, log, closing: closing.signal });
  const sandboxes = new Sandboxes({ ...parts, defaultProvider: local.kind, reconciler });

  let notReady: string | undefined = "the server is still looking for its sandboxes";
  const secret = config.token ?? token.token;
  const app = createApp({ sandboxes, log, token: () => secret, notReady: () => notReady });
  const listening = listen(app, config);

  const adopted = (await store.unsettled()).length;
  await Promise.race([reconciler.adopt(), systemClock.sleep(ADOPTION_PATIENCE_MS)]);
  reconciler.start();
  notReady = undefined;
  welcome({ url: listening.url, tokenPath: token.path, dataDir: config.dataDir, adopted });

  await signalled();
  notReady = "the server is shutting down";
  closing.abort();
  await listening.close({ graceMs: SHUTDOWN_GRACE_MS });
  // What takes longer is left as it is: the next start finishes it, as after a crash.
  await Promise.race([reconciler.close(), systemClock.sleep(SHUTDOWN_GRACE_MS)]);
  const { holdings } = await store.list({ limit: 1000, states: ["running"] });
  keepers.close();
  store.close();
  dataDir.release();
  goodbye({ running: holdings.map(({ sandbox }) => sandbox.name) });
  process.exit(0);
}

async function refuseIfUnusable(provider: Provider, log: Log): Promise<void> {
  const checks = await provider.probe();
  const broken = checks.find((check) => check.required && !check.ok);
  if (broken !== undefined) {
    throw new HoldfastError(
      "provider_unavailable",
      `cannot isolate sandboxes here: ${broken.name}: ${broken.detail}`,
      {
        hint: broken.remedy ?? "run `holdfast doctor` for the whole list",
      },
    );
  }
  for (const check of checks.filter(({ ok }) => !ok)) {
    log.warn("something optional is missing", {
      check: check.name,
      detail: check.detail,
      remedy: check.remedy,
    });
  }
}

function signalled(): Promise<void> {
  return new Promise((resolve) => {
    for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) process.on(signal, () => resolve());
  });
}
