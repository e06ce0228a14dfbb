import { homedir } from "node:os";
import { join, resolve } from "node:path";
import { parseArgs } from "node:util";
import { DEFAULT_PORT, HoldfastError } from "@holdfast/protocol";

export interface Config {
  readonly host: string;
  readonly port: number;
  readonly dataDir: string;
  /** From the environment; wins over the token file. */
  readonly token: string | undefined;
  readonly logLevel: string;
}

export const usage = `Usage: holdfast serve [options]

Starts the server. Sandboxes outlive it: stop it, start it again, and they are still there.

Options:
  --host HOST       address to listen on            (HOLDFAST_HOST, default 127.0.0.1)
  --port PORT       port to listen on, 0 for any    (HOLDFAST_PORT, default ${DEFAULT_PORT})
  --data-dir DIR    where everything is kept        (HOLDFAST_DATA_DIR, default ${defaultDataDir(process.env)})
  --log-level LEVEL debug, info, warn, error        (HOLDFAST_LOG_LEVEL, default info)
  --help            this text

The API token is made at the first start and kept in DIR/token; HOLDFAST_TOKEN wins over it.

Examples:
  holdfast serve
  holdfast serve --port 0 --data-dir ~/.cache/holdfast-test
`;

export function readConfig(argv: readonly string[], env: NodeJS.ProcessEnv): Config | "help" {
  const values = parse(argv);
  if (values.help) return "help";
  return {
    host: values.host ?? env.HOLDFAST_HOST ?? "127.0.0.1",
    port: portOf(values.port ?? env.HOLDFAST_PORT ?? String(DEFAULT_PORT)),
    dataDir: resolve(values["data-dir"] ?? env.HOLDFAST_DATA_DIR ?? defaultDataDir(env)),
    token: tokenOf(env.HOLDFAST_TOKEN),
    logLevel: levelOf(values["log-level"] ?? env.HOLDFAST_LOG_LEVEL ?? "info"),
  };
}

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
        "data-dir": text,
        "log-level": text,
        help: { type: "boolean", short: "h" },
      },
    }).values;
  } catch (error) {
    throw usageError(error instanceof Error ? error.message : String(error));
  }
}

function portOf(text: string): number {
  const port = Number(text);
  if (!/^\d+$/.test(text) || port > 65535)
    throw usageError(`--port must be a number from 0 to 65535, not "${text}"`);
  return port;
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
