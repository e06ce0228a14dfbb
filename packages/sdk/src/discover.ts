import { HoldfastError } from "@holdfast/protocol/errors";
import { DEFAULT_PORT } from "@holdfast/protocol/version";

/** Which server, and how to prove who we are. Everything may be left out on the server's own machine. */
export interface ServerAddress {
  /** Default: `HOLDFAST_URL`, else `http://127.0.0.1:4750`. */
  url?: string | undefined;
  /** Default: `HOLDFAST_TOKEN`, else the file `token` in the data directory of a server on this machine. */
  token?: string | undefined;
  /** Where a server on this machine keeps its data. Default: `HOLDFAST_DATA_DIR`, else the server's own default. */
  dataDir?: string | undefined;
}

export interface Discovered {
  url: string;
  token: string | undefined;
}

type Environment = Record<string, string | undefined>;

/** Finds the server: what the caller says, then the environment, then this machine. Asks nobody. */
export async function discover(
  address: ServerAddress,
  env: Environment = environment(),
): Promise<Discovered> {
  const url = (address.url ?? nonEmpty(env.HOLDFAST_URL) ?? `http://127.0.0.1:${DEFAULT_PORT}`).replace(
    /\/+$/,
    "",
  );
  if (!/^https?:/.test(url) || !URL.canParse(url)) throw noAddress(url);
  const token = address.token ?? nonEmpty(env.HOLDFAST_TOKEN);
  if (token !== undefined) return { url, token: token.trim() };
  // This machine's token is for this machine's server: another host must never be sent it.
  if (!isLoopback(url)) return { url, token: undefined };
  return {
    url,
    token: await tokenIn(address.dataDir ?? nonEmpty(env.HOLDFAST_DATA_DIR) ?? defaultDataDir(env)),
  };
}

function noAddress(url: string): HoldfastError {
  return new HoldfastError("invalid_argument", `"${url}" is not the address of a server`, {
    hint: `Set HOLDFAST_URL (or --url) to one such as http://127.0.0.1:${DEFAULT_PORT}.`,
    started: "no",
  });
}

/** The server's own default: a folder under /var/lib for root, the XDG data folder for everybody else. */
function defaultDataDir(env: Environment): string | undefined {
  if (nodeLike()?.getuid?.() === 0) return "/var/lib/holdfast";
  const data =
    nonEmpty(env.XDG_DATA_HOME) ?? (env.HOME === undefined ? undefined : `${env.HOME}/.local/share`);
  return data === undefined ? undefined : `${data}/holdfast`;
}

async function tokenIn(dataDir: string | undefined): Promise<string | undefined> {
  if (dataDir === undefined || nodeLike() === undefined) return undefined;
  // By a variable, so that a bundler for the browser neither follows it nor stumbles over it.
  const fileSystem = "node:fs/promises";
  const { readFile } = (await import(fileSystem)) as typeof import("node:fs/promises");
  try {
    return nonEmpty((await readFile(`${dataDir}/token`, "utf8")).trim());
  } catch {
    return undefined; // No server has run here, or not for us: its own answer will say so better than we can.
  }
}

export function isLoopback(url: string): boolean {
  return URL.canParse(url) && /^(127(\.\d+){3}|localhost|\[::1\])$/.test(new URL(url).hostname);
}

interface NodeLike {
  env: Environment;
  getuid?: () => number;
}

function nodeLike(): NodeLike | undefined {
  const { process } = globalThis as { process?: { env?: Environment; getuid?: () => number } };
  return process?.env === undefined ? undefined : (process as NodeLike);
}

function environment(): Environment {
  return nodeLike()?.env ?? {};
}

function nonEmpty(text: string | undefined): string | undefined {
  return text === undefined || text === "" ? undefined : text;
}
