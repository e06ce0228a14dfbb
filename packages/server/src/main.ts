import { join } from "node:path";
import { defaultMinFreeDisk, type Store } from "@holdfast/core";
import { KeeperLink } from "@holdfast/keeper-link";
import { HoldfastError } from "@holdfast/protocol";
import { PostgresStore, SqliteStore } from "@holdfast/store";
import { createApp } from "./app.ts";
import { goodbye, welcome } from "./banner.ts";
import { type Chosen, chooseProviders } from "./choose-providers.ts";
import { systemClock } from "./clock.ts";
import { type Config, clientSettings, readConfig, usage } from "./config.ts";
import { createProvider } from "./create-provider.ts";
import { holdDataDir } from "./data-dir.ts";
import { checkHome, homeOf } from "./data-dir-home.ts";
import { newId, newInstallationId, newServerId } from "./ids.ts";
import { Lifecycle } from "./lifecycle/lifecycle.ts";
import { listen } from "./listen.ts";
import { createLog, type Log } from "./log.ts";
import { keeperSpans } from "./observe/keeper-spans.ts";
import { meteredProvider } from "./observe/metered-provider.ts";
import { meteredStore } from "./observe/metered-store.ts";
import { Meters } from "./observe/meters.ts";
import { startTracing } from "./observe/start-tracing.ts";
import type { Tracer } from "./observe/trace.ts";
import { startPreviews } from "./previews/start-previews.ts";
import { Token } from "./token.ts";

/** Calls under way at the end get this long; a command itself goes on in its keeper. */
const SHUTDOWN_GRACE_MS = 2_000;
/** What ends with its server gets this long for it: a keeper's own grace, and then it is killed. */
const BOUND_GRACE_MS = 10_000;
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
  const isShared = config.database !== undefined;
  const dataDir = holdDataDir(config.dataDir, { mode: isShared ? "shared" : "alone" });
  const token = new Token(config.dataDir, { given: config.token });
  const meters = new Meters();
  const store = meteredStore(await openStore(config), meters);
  await checkPlace(store, config);
  const chosen = await chooseProviders(config, createProvider);
  for (const { name: check, detail, remedy } of chosen.without)
    log.warn("something optional is missing", { check, detail, remedy });
  const tracing = await startTracing(process.env, log);
  const tracer = tracing?.tracer;
  const lifecycle = createLifecycle(config, { store, chosen, log, meters, tracer });

  let notReady: string | undefined = "the server is still looking for its sandboxes";
  const isReady = () => notReady === undefined;
  const previews = await startPreviews(config, { sandboxes: lifecycle.sandboxes, isShared, log, isReady });
  const app = createApp({
    ...{ lifecycle, previews, log, meters, tracer, notReady: () => notReady },
    ...{ token: () => token.current(), rotateToken: () => token.rotate() },
    allowedOrigins: config.allowedOrigins,
  });
  const listening = listen(app, { ...config, isShared });

  const found = (await store.unsettled()).length;
  await Promise.race([lifecycle.start(), systemClock.sleep(ADOPTION_PATIENCE_MS)]);
  notReady = undefined;
  welcome({
    url: listening.url,
    previewUrl: previews.url,
    tokenPath: token.path,
    dataDir: config.dataDir,
    adopted: found,
    provider: providerLine(chosen),
    settings: clientSettings(config, listening.url),
  });

  await signalled();
  notReady = "the server is shutting down";
  await lifecycle.endBound({ ms: BOUND_GRACE_MS });
  lifecycle.stop();
  await previews.close();
  await listening.close({ graceMs: SHUTDOWN_GRACE_MS });
  // What takes longer is left as it is: the next start finishes it, as after a crash.
  await Promise.race([lifecycle.close(), systemClock.sleep(SHUTDOWN_GRACE_MS)]);
  const { holdings } = await store.list({ limit: 1000, states: ["running"] });
  await store.close();
  await Promise.race([tracing?.close(), systemClock.sleep(SHUTDOWN_GRACE_MS)]);
  dataDir.release();
  goodbye({ running: holdings.map(({ sandbox }) => sandbox.name) });
  process.exit(0);
}

async function openStore({ database, dataDir }: Config): Promise<Store> {
  if (database !== undefined) return PostgresStore.open({ url: database, newId: newInstallationId });
  return new SqliteStore({ path: join(dataDir, "holdfast.db"), newId: newInstallationId, now: Date.now });
}

/** Rows that were made elsewhere speak of instances that may be another server's. */
async function checkPlace(store: Store, { dataDir, dataDirMoved }: Config): Promise<void> {
  const present = homeOf(dataDir);
  const recorded = await store.home(present);
  if (checkHome({ recorded, present, moved: dataDirMoved }) === "moved") await store.moveHome(present);
}

function createLifecycle(
  config: Config,
  parts: { store: Store; chosen: Chosen; log: Log; meters: Meters; tracer: Tracer | undefined },
): Lifecycle<KeeperLink> {
  const { store, chosen, log, meters, tracer } = parts;
  const { providers } = chosen;
  const around = tracer === undefined ? undefined : keeperSpans(tracer);
  return new Lifecycle<KeeperLink>({
    store,
    providers: new Map(providers.map((one) => [one.kind, meteredProvider(one, { meters, tracer })])),
    door: ({ address, secret, fence }) => new KeeperLink({ socketPath: address.path, secret, fence, around }),
    ...(tracer !== undefined && {
      around: (name, work) => tracer.within({ name, kind: "internal" }, work),
    }),
    clock: systemClock,
    random: Math.random,
    newId,
    log,
    owner: newServerId(),
    config: {
      defaultProvider: providers[0]?.kind ?? "none",
      defaultBecause: chosen.because,
      slots: config.maxSandboxes,
      tenantQuota: config.quota,
      spares: config.spares,
      minFreeDisk: { ...defaultMinFreeDisk, share: config.minFreeDiskPercent / 100 },
      orphanLimitSeconds: config.orphanLimitSeconds,
    },
  });
}

/** Said where it is not what everybody else has. */
function providerLine({ providers, because }: Chosen): string | undefined {
  const kinds = providers.map(({ kind }) => kind);
  if (because !== undefined) return `${kinds[0]}, because ${because}`;
  return kinds.join() === "local" ? undefined : kinds.join(", ");
}

function signalled(): Promise<void> {
  return new Promise((resolve) => {
    for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) process.on(signal, () => resolve());
  });
}
