import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { HoldfastError } from "@holdfast/protocol";
import { SshTransport } from "./transport-ssh.ts";

/** A way to a daemon. */
export interface Transport {
  /** As people know it. */
  readonly host: string;
  /** Where requests go; asked for before each of them. */
  target(): Promise<Target>;
  /** What is wrong, where the way knows more of it than a broken connection tells. */
  explain(): HoldfastError | undefined;
}

export interface Target {
  /** `http://docker` where the socket says it all. */
  readonly url: string;
  readonly unix?: string;
  readonly tls?: Tls;
  /** Whether a connection is kept for the next request, because it is dear. */
  readonly keepalive?: boolean;
}

interface Tls {
  readonly ca: string;
  readonly cert: string;
  readonly key: string;
}

export interface TransportOptions {
  /** As in DOCKER_HOST. */
  readonly host: string;
  /** As in DOCKER_CERT_PATH, if TLS is to be spoken: a folder with `ca.pem`, `cert.pem` and `key.pem`. */
  readonly certPath?: string | undefined;
  /** For sockets of our own; nobody else may look into it. */
  readonly runDir: string;
}

export function transportOf({ host, certPath, runDir }: TransportOptions): Transport {
  const socket = /^unix:\/\/(\/.+)$/.exec(host)?.[1];
  if (socket !== undefined) return plain(socket, { url: "http://docker", unix: socket });
  const address = /^tcp:\/\/([^/@]+)\/?$/.exec(host)?.[1];
  if (address !== undefined && certPath !== undefined)
    return withTls(host, withPort(address, 2376), certPath);
  if (address !== undefined) return plain(host, { url: `http://${withPort(address, 2375)}` });
  if (host.startsWith("ssh://")) return new SshTransport({ host, runDir });
  throw new HoldfastError("unsupported", `Docker cannot be reached by ${host}`, {
    hint: "DOCKER_HOST is unix:///path/to.sock, tcp://host:port or ssh://user@host.",
  });
}

/** Whether everybody on the way can read what is said, and say something else. */
export function isOpenToOthers({ host, certPath }: Omit<TransportOptions, "runDir">): boolean {
  const isHere = /^tcp:\/\/(localhost|127\.\d+\.\d+\.\d+|\[::1\])(:|\/|$)/.test(host);
  return host.startsWith("tcp://") && certPath === undefined && !isHere;
}

function plain(host: string, target: Target): Transport {
  return { host, target: async () => target, explain: () => undefined };
}

/** The files are read each time: certificates are short-lived things. The daemon's is always checked. */
function withTls(host: string, address: string, certPath: string): Transport {
  const read = (name: string) => readPem(join(certPath, name));
  const target = async (): Promise<Target> => {
    const tls = { ca: await read("ca.pem"), cert: await read("cert.pem"), key: await read("key.pem") };
    return { url: `https://${address}`, tls };
  };
  return { host, target, explain: () => undefined };
}

async function readPem(path: string): Promise<string> {
  try {
    return await readFile(path, "utf8");
  } catch (cause) {
    throw new HoldfastError("provider_unavailable", `Docker's certificate ${path} cannot be read`, {
      hint: "DOCKER_CERT_PATH must be a folder with ca.pem, cert.pem and key.pem.",
      cause,
      started: "no",
    });
  }
}

function withPort(address: string, port: number): string {
  return /:\d+$/.test(address) ? address : `${address}:${port}`;
}
