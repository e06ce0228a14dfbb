import { mkdirSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { join } from "node:path";

/** A daemon that is reached over the network, as on another machine. */
export interface RemoteAccess {
  /** As in DOCKER_HOST. */
  readonly host: string;
  /** As in DOCKER_CERT_PATH: it speaks with nobody who has no certificate from there. */
  readonly certPath: string;
  /** Its arguments for that; on this machine's own network, so it makes no bridge there. */
  readonly argv: readonly string[];
}

export async function remoteAccess(dir: string): Promise<RemoteAccess> {
  const certPath = join(dir, "certificates");
  makeCertificates(certPath);
  const host = `tcp://127.0.0.1:${await freePort()}`;
  const file = (name: string) => join(certPath, name);
  const argv = [
    ...["--host", host, "--bridge", "none", "--iptables=false", "--tlsverify"],
    ...["--tlscacert", file("ca.pem"), "--tlscert", file("server.pem"), "--tlskey", file("server-key.pem")],
  ];
  return { host, certPath, argv };
}

/** An authority, the daemon's certificate and a client's, under the names that docker gives them. */
function makeCertificates(dir: string): void {
  mkdirSync(dir, { mode: 0o700 });
  const openssl = (args: readonly string[]): void => {
    const { exitCode, stderr } = Bun.spawnSync(["openssl", ...args], { cwd: dir });
    if (exitCode !== 0) throw new Error(`openssl ${args.join(" ")}: ${stderr}`);
  };
  const newKey = ["req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"];
  openssl([...newKey, "-x509", "-days", "2", "-subj", "/CN=test", "-keyout", "ca-key.pem", "-out", "ca.pem"]);
  for (const [name, use] of [
    ["server", "serverAuth"],
    ["", "clientAuth"],
  ] as const) {
    const [key, cert] = name === "" ? ["key.pem", "cert.pem"] : [`${name}-key.pem`, `${name}.pem`];
    writeFileSync(join(dir, "extensions"), `subjectAltName=IP:127.0.0.1\nextendedKeyUsage=${use}\n`);
    openssl([...newKey, "-subj", `/CN=${use}`, "-keyout", key, "-out", "request"]);
    const by = ["-CA", "ca.pem", "-CAkey", "ca-key.pem", "-CAcreateserial", "-extfile", "extensions"];
    openssl(["x509", "-req", "-in", "request", "-days", "2", ...by, "-out", cert]);
  }
}

/** Free in this moment. */
export async function freePort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const address = server.address();
  await new Promise((resolve) => server.close(resolve));
  if (address === null || typeof address === "string") throw new Error("no port");
  return address.port;
}
