import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { HoldfastError } from "@holdfast/protocol";
import { isCode } from "../local/atomic-file.ts";
import { DOCKER_HUB } from "./image-name.ts";

/** What docker's own programs keep in `config.json`. */
interface DockerConfig {
  readonly auths?: Readonly<Record<string, { auth?: string; identitytoken?: string }>>;
  readonly credsStore?: string;
  readonly credHelpers?: Readonly<Record<string, string>>;
}

/** How to introduce oneself to a registry. */
interface Credentials {
  readonly username?: string;
  readonly password?: string;
  readonly identitytoken?: string;
}

/** A keychain may ask its owner something; nobody is there to answer. */
const HELPER_TIMEOUT_MS = 10_000;

/**
 * The header with what the user's `docker login` has left for this registry; none if it has left nothing. It goes to the
 * daemon and nowhere else. `configDir` as in DOCKER_CONFIG.
 */
export async function registryAuth(configDir: string, registry: string): Promise<Record<string, string>> {
  const config = await readConfig(join(configDir, "config.json"));
  const found = (await askHelper(config, registry)) ?? inFile(config, registry);
  if (found === undefined) return {};
  const said = JSON.stringify({ ...found, serveraddress: registry });
  // With the padding, without which some daemons read nothing in it.
  const encoded = Buffer.from(said).toString("base64").replaceAll("+", "-").replaceAll("/", "_");
  return { "X-Registry-Auth": encoded };
}

async function readConfig(file: string): Promise<DockerConfig> {
  try {
    return JSON.parse(await readFile(file, "utf8")) as DockerConfig;
  } catch (cause) {
    if (isCode(cause, "ENOENT", "ENOTDIR")) return {};
    throw new HoldfastError("launch_failed", `docker's ${file} cannot be read`, {
      hint: "Credentials for registries are in it: repair it, or point DOCKER_CONFIG to another folder.",
      cause,
      started: "no",
    });
  }
}

function inFile({ auths = {} }: DockerConfig, registry: string): Credentials | undefined {
  const key = Object.keys(auths).find((one) => hostOf(one) === hostOf(registry));
  const { auth, identitytoken } = (key === undefined ? undefined : auths[key]) ?? {};
  if (identitytoken) return { identitytoken };
  if (!auth) return undefined;
  const [, username = "", password = ""] =
    /^([^:]*):(.*)$/s.exec(Buffer.from(auth, "base64").toString()) ?? [];
  return { username, password };
}

/** A program that knows a keychain. One that is not there, or knows nothing, is no reason not to ask for a public image. */
async function askHelper(config: DockerConfig, registry: string): Promise<Credentials | undefined> {
  const { credHelpers = {}, credsStore } = config;
  const key = Object.keys(credHelpers).find((one) => hostOf(one) === hostOf(registry));
  const helper = key === undefined ? credsStore : credHelpers[key];
  if (!helper || !/^[\w.-]+$/.test(helper)) return undefined;
  const program = Bun.which(`docker-credential-${helper}`, { PATH: process.env.PATH ?? "" });
  if (program === null) return undefined;
  const child = Bun.spawn([program, "get"], {
    ...{ stdin: Buffer.from(registry), stdout: "pipe", stderr: "ignore" },
    ...{ timeout: HELPER_TIMEOUT_MS, killSignal: "SIGKILL" },
  });
  const said = await new Response(child.stdout).text();
  if ((await child.exited) !== 0) return undefined;
  return readAnswer(said);
}

function readAnswer(said: string): Credentials | undefined {
  try {
    const { Username, Secret } = JSON.parse(said) as { Username?: string; Secret?: string };
    if (Username === undefined || Secret === undefined) return undefined;
    return Username === "<token>" ? { identitytoken: Secret } : { username: Username, password: Secret };
  } catch {
    return undefined; // it says in words that it has none
  }
}

/** Registries are written with and without `https://` and a path. */
function hostOf(registry: string): string {
  const host = registry.replace(/^https?:\/\//, "").replace(/\/.*$/, "");
  return host === "docker.io" || host === "registry-1.docker.io" ? hostOf(DOCKER_HUB) : host;
}
