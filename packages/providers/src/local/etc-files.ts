import { readdirSync } from "node:fs";
import { inside } from "./inside.ts";

/**
 * What a sandbox sees of the host's /etc: what programs need to run, and nothing that may hold a secret. Left out on
 * purpose: shadow, ssh, gitconfig, npmrc, pip.conf (tokens), cron, systemd, sudoers, and private keys. Each directory
 * that exists is a mount and costs 0.1 ms of every launch.
 */
const HOST_FILES: readonly string[] = [
  "alternatives",
  "bash.bashrc",
  "ca-certificates",
  "crypto-policies",
  "debian_version",
  "fonts",
  "inputrc",
  "ld.so.cache",
  "ld.so.conf",
  "ld.so.conf.d",
  "locale.alias",
  "localtime",
  "maven/logging",
  "maven/m2.conf",
  "mime.types",
  "os-release",
  "pki/ca-trust/extracted",
  "pki/tls/certs",
  "profile",
  "profile.d",
  "protocols",
  "services",
  "ssl/certs",
  "ssl/openssl.cnf",
  "terminfo",
  "timezone",
];

/** Parts of a program under /usr that distributions keep here, in folders named by its version. */
const PROGRAM_FOLDERS = /^(java-\d+-openjdk|python3(\.\d+)?)$/;

export function hostEtcFiles(etc = "/etc"): string[] {
  return [...HOST_FILES, ...readdirSync(etc).filter((file) => PROGRAM_FOLDERS.test(file))];
}

const { user, uid, home } = inside;

/** What is written for all sandboxes alike. */
export const commonEtcFiles: Readonly<Record<string, string>> = {
  passwd: `root:x:0:0:root:/nonexistent:/usr/sbin/nologin\n${user}:x:${uid}:${uid}::${home}:/bin/bash\nnobody:x:65534:65534::/nonexistent:/usr/sbin/nologin\n`,
  group: `root:x:0:\ntty:x:5:\n${user}:x:${uid}:\nnogroup:x:65534:\n`,
  // The host's may name services whose sockets are not to be seen inside.
  "nsswitch.conf":
    "passwd: files\ngroup: files\nshadow: files\nhosts: files dns\nnetworks: files\nprotocols: files\nservices: files\n",
  shells: "/bin/sh\n/bin/bash\n/usr/bin/sh\n/usr/bin/bash\n",
};

/** What each sandbox has of its own; `resolv.conf` is empty, but for network `full`. */
export const ownEtcFiles = ["hosts", "hostname", "resolv.conf"] as const;

/** What is written for this sandbox alone. */
export function generatedEtcFiles(hostname: string): Record<"hosts" | "hostname", string> {
  return {
    hosts: `127.0.0.1 localhost\n::1 localhost ip6-localhost ip6-loopback\n127.0.1.1 ${hostname}\n`,
    hostname: `${hostname}\n`,
  };
}
