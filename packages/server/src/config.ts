import { homedir } from "node:os";
import { join, resolve } from "node:path";
import { parseArgs } from "node:util";
import { DEFAULT_PORT, HoldfastError } from "@holdfast/protocol";
import type { AllowedMount } from "@holdfast/providers";

export interface Config {
  readonly host: string;
  readonly port: number;
  /** Where previews are listened for; `undefined`: the port after the API's. */
  readonly previewPort: number | undefined;
  /** How visitors reach that, if an operator's own domain and proxy are in front. */
  readonly previewUrl: string | undefined;
  readonly dataDir: string;
  /** The caller says that the data dir was moved here, and that its old place is no longer used. */
  readonly dataDirMoved: boolean;
  /** `postgres://…`; without it, SQLite in the data dir. */
  readonly database: string | undefined;
  /** Where sandboxes may be; the first is for those that name none. Without it, what this machine can do. */
  readonly providers: readonly ProviderKind[] | undefined;
  /** The daemon, as docker's own programs take it from the environment. */
  readonly dockerHost: string | undefined;
  /** Where its certificates are, if it is to be spoken to with TLS. */
  readonly dockerCertPath: string | undefined;
  /** Where docker's own programs keep logins to registries. */
  readonly dockerConfigDir: string | undefined;
  /** For sandboxes in Docker that name none. */
  readonly dockerImage: string | undefined;
  /** What of this machine sandboxes may see when they ask for it. */
  readonly allowedMounts: readonly AllowedMount[];
  /** Whose pages may call the API in a browser, beside the server's own. */
  readonly allowedOrigins: readonly string[];
  /** From the environment; wins over the token file. */
  readonly token: string | undefined;
  readonly maxSandboxes: number | null;
  readonly quota: number | null;
  /** How many instances may be launched ahead of who will ask for them. */
  readonly spares: number;
  readonly minFreeDiskPercent: number;
  readonly orphanLimitSeconds: number;
  readonly logLevel: string;
}

const providerKinds = ["local", "docker"] as const;
export type ProviderKind = (typeof providerKinds)[number];

export const usage = `Usage: holdfast serve [options]

Starts the server. Sandboxes outlive it: stop it, start it again, and they are still there.

Options:
  --host HOST           address to listen on            (HOLDFAST_HOST, default 127.0.0.1)
  --port PORT           port to listen on, 0 for any    (HOLDFAST_PORT, default ${DEFAULT_PORT})
  --preview-port PORT   where previews are served       (HOLDFAST_PREVIEW_PORT, default the one after --port)
  --preview-url URL     how visitors reach previews through your proxy: https://preview.example.com
                        for *.preview.example.com       (HOLDFAST_PREVIEW_URL, default http://localhost:PORT)
  --data-dir DIR        where everything is kept        (HOLDFAST_DATA_DIR, default ${defaultDataDir(process.env)})
  --data-dir-moved      the data dir was moved here, and its old place is no longer used
  --database URL        postgres://… for several servers on one data dir
                                                        (HOLDFAST_DATABASE_URL, default SQLite in DIR)
  --providers LIST      where sandboxes may be: local, docker; the first is the default
                                                        (HOLDFAST_PROVIDERS, default local, or docker
                                                        where namespaces cannot be had)
  --docker-image IMAGE  for sandboxes in Docker that name none
                                                        (HOLDFAST_DOCKER_IMAGE, default debian:bookworm)
  --allow-mount DIR[:ro]
                        sandboxes may mount what is in it; again for more
                                                        (HOLDFAST_ALLOW_MOUNTS, with commas; default none)
  --allow-origin URL    pages of this origin may call the API: https://app.example.com, or * for all;
                        again for more                  (HOLDFAST_ALLOW_ORIGINS, with commas; default none)
  --max-sandboxes N     instances at a time             (HOLDFAST_MAX_SANDBOXES, default no limit)
  --quota N             instances of one tenant         (HOLDFAST_QUOTA, default no limit)
  --spares N            instances launched ahead of the next create that is like the last;
                        0 for none                      (HOLDFAST_SPARES, default 1)
  --min-free-disk PCT   below this share of free disk no sandbox is started
                                                        (HOLDFAST_MIN_FREE_DISK, default 10)
  --orphan-limit SECS   a busy sandbox without any server ends after this
                                                        (HOLDFAST_ORPHAN_LIMIT, default 86400)
  --log-level LEVEL     debug, info, warn, error        (HOLDFAST_LOG_LEVEL, default info)
  --help                this text

Docker's daemon is found as docker itself finds it: DOCKER_HOST (unix://, tcp:// or ssh://), with
DOCKER_TLS_VERIFY and DOCKER_CERT_PATH for TLS.
The API token is made at the first start and kept in DIR/token; HOLDFAST_TOKEN wins over it.

Examples:
  holdfast serve
  holdfast serve --port 0 --data-dir ~/.cache/holdfast-test
  holdfast serve --database postgres://holdfast@db.internal/holdfast --max-sandboxes 200
`;

export function readConfig(argv: readonly string[], env: NodeJS.ProcessEnv): Config | "help" {
  const values = parse(argv);
  if (values.help) return "help";
  const number = (name: NumberOption) => numberOf(name, values[name] ?? env[variableOf(name)]);
  return {
    host: values.host ?? env.HOLDFAST_HOST ?? "127.0.0.1",
    port: portOf("port", values.port ?? env.HOLDFAST_PORT ?? String(DEFAULT_PORT)),
    previewPort: optionalPort(values["preview-port"] ?? env.HOLDFAST_PREVIEW_PORT),
    previewUrl: previewUrlOf(values["preview-url"] ?? env.HOLDFAST_PREVIEW_URL),
    dataDir: resolve(values["data-dir"] ?? env.HOLDFAST_DATA_DIR ?? defaultDataDir(env)),
    dataDirMoved: values["data-dir-moved"] ?? false,
    database: databaseOf(values.database ?? env.HOLDFAST_DATABASE_URL),
    providers: providersOf(values.providers ?? env.HOLDFAST_PROVIDERS),
    dockerHost: env.DOCKER_HOST || undefined,
    dockerCertPath: dockerCertPathOf(env),
    dockerConfigDir: env.DOCKER_CONFIG || undefined,
    dockerImage: values["docker-image"] ?? (env.HOLDFAST_DOCKER_IMAGE || undefined),
    allowedMounts: (values["allow-mount"] ?? listOf(env.HOLDFAST_ALLOW_MOUNTS)).map(allowedMountOf),
    allowedOrigins: (values["allow-origin"] ?? listOf(env.HOLDFAST_ALLOW_ORIGINS)).map(originOf),
    token: tokenOf(env.HOLDFAST_TOKEN),
    maxSandboxes: number("max-sandboxes") ?? null,
    quota: number("quota") ?? null,
    spares: number("spares") ?? 1,
    minFreeDiskPercent: percentOf(number("min-free-disk") ?? 10),
    orphanLimitSeconds: number("orphan-limit") ?? 86_400,
    logLevel: levelOf(values["log-level"] ?? env.HOLDFAST_LOG_LEVEL ?? "info"),
  };
}

/** What a client in another terminal must be told, because it would look elsewhere. */
export function clientSettings({ dataDir }: Config, url: string): string {
  const settings = [
    ...(url === DEFAULT_URL ? [] : [`HOLDFAST_URL=${url}`]),
    ...(dataDir === defaultDataDir(process.env) ? [] : [`HOLDFAST_DATA_DIR=${dataDir}`]),
  ];
  return settings.map((setting) => `${setting} `).join("");
}

const DEFAULT_URL = `http://127.0.0.1:${DEFAULT_PORT}`;

type NumberOption = "max-sandboxes" | "quota" | "spares" | "min-free-disk" | "orphan-limit";

/** As root not under root's home: the sandboxes' own unprivileged users must be able to reach their disks. */
function defaultDataDir(env: NodeJS.ProcessEnv): string {
  if (process.getuid?.() === 0) return "/var/lib/holdfast";
  return join(env.XDG_DATA_HOME || join(homedir(), ".local", "share"), "holdfast");
}

function parse(argv: readonly string[]) {
  const text = { type: "string" } as const;
  try {
    return parseArgs({
      args: [...argv],
      options: {
        host: text,
        port: text,
        "preview-port": text,
        "preview-url": text,
        "data-dir": text,
        "data-dir-moved": { type: "boolean" },
        database: text,
        providers: text,
        "docker-image": text,
        "allow-mount": { type: "string", multiple: true },
        "allow-origin": { type: "string", multiple: true },
        "max-sandboxes": text,
        quota: text,
        spares: text,
        "min-free-disk": text,
        "orphan-limit": text,
        "log-level": text,
        help: { type: "boolean", short: "h" },
      },
    }).values;
  } catch (error) {
    throw usageError(error instanceof Error ? error.message : String(error));
  }
}

function portOf(name: string, text: string): number {
  const port = Number(text);
  if (!/^\d+$/.test(text) || port > 65535)
    throw usageError(`--${name} must be a number from 0 to 65535, not "${text}"`);
  return port;
}

function optionalPort(text: string | undefined): number | undefined {
  return text === undefined || text === "" ? undefined : portOf("preview-port", text);
}

/** Each preview is a name below it, so it is a name, with nothing after it. */
function previewUrlOf(text: string | undefined): string | undefined {
  if (text === undefined || text === "") return undefined;
  if (!/^https?:\/\/[a-z0-9]([a-z0-9.-]*[a-z0-9])?(:\d{1,5})?\/?$/i.test(text) || /\.\d+(:|\/|$)/.test(text))
    throw usageError(`--preview-url must be like https://preview.example.com, not "${text}"`);
  return text;
}

/** `max-sandboxes` → `HOLDFAST_MAX_SANDBOXES` */
function variableOf(name: NumberOption): string {
  return `HOLDFAST_${name.replaceAll("-", "_").toUpperCase()}`;
}

function numberOf(name: NumberOption, text: string | undefined): number | undefined {
  if (text === undefined || text === "") return undefined;
  if (!/^\d{1,12}$/.test(text)) throw usageError(`--${name} must be a whole number, not "${text}"`);
  return Number(text);
}

function percentOf(percent: number): number {
  if (percent <= 99) return percent;
  throw usageError(`--min-free-disk must be from 0 to 99 percent, not ${percent}`);
}

/** Not shown in the message: there may be a password in it. */
function databaseOf(url: string | undefined): string | undefined {
  if (url === undefined || url === "") return undefined;
  if (!/^postgres(ql)?:\/\//.test(url)) throw usageError("--database must be a postgres:// address");
  return url;
}

function providersOf(list: string | undefined): ProviderKind[] | undefined {
  if (list === undefined || list === "") return undefined;
  const wanted = [...new Set(list.split(",").map((name) => name.trim()))];
  return wanted.map((name) => {
    const kind = providerKinds.find((one) => one === name);
    if (kind === undefined) throw usageError(`--providers: there is no provider "${name}"`);
    return kind;
  });
}

/** By docker's own rule: TLS is asked for by one variable, and the other says where its files are. */
function dockerCertPathOf(env: NodeJS.ProcessEnv): string | undefined {
  if (!env.DOCKER_TLS_VERIFY) return undefined;
  return env.DOCKER_CERT_PATH || join(homedir(), ".docker");
}

function listOf(text: string | undefined): string[] {
  return (text ?? "").split(",").filter((one) => one !== "");
}

function allowedMountOf(text: string): AllowedMount {
  const readOnly = text.endsWith(":ro");
  const dir = readOnly ? text.slice(0, -":ro".length) : text;
  if (!dir.startsWith("/")) throw usageError(`--allow-mount must be an absolute path, not "${text}"`);
  return { dir: resolve(dir), readOnly };
}

/** As a browser says it: a scheme and a host, and nothing after them. */
function originOf(text: string): string {
  if (text === "*" || text === "null") return text;
  const isOne = /^[a-z][a-z0-9+.-]*:\/\/[^/?#@]+\/?$/i.test(text) && URL.canParse(text);
  if (!isOne) throw usageError(`--allow-origin must be like https://app.example.com, not "${text}"`);
  const { origin } = new URL(text);
  return origin === "null" ? text.replace(/\/$/, "") : origin;
}

function levelOf(level: string): string {
  if (!["debug", "info", "warn", "error"].includes(level))
    throw usageError(`--log-level cannot be "${level}"`);
  return level;
}

function tokenOf(token: string | undefined): string | undefined {
  if (token === undefined || token === "") return undefined;
  if (token.length < 16)
    throw usageError("HOLDFAST_TOKEN is too short to be a secret: use at least 16 characters");
  return token;
}

function usageError(message: string): HoldfastError {
  return new HoldfastError("invalid_argument", message, { hint: "holdfast serve --help" });
}
