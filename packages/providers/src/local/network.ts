import { existsSync, readFileSync, statSync } from "node:fs";
import { constants } from "node:fs/promises";
import { HoldfastError } from "@holdfast/protocol";
import { isRoot } from "./host-user.ts";
import { findProgram, programPath } from "./programs.ts";

/**
 * A sandbox always has a network namespace of its own: in the host's it would reach every service on the host's
 * loopback, ours first. `none` leaves it empty. `full` lets pasta carry connections out of it: pasta makes the
 * namespace, starts bubblewrap in it, and opens ordinary sockets on the host for what goes out.
 */
const TUN = "/dev/net/tun";

/**
 * pasta answers name queries to this address with the host's own resolver, also where that listens on the host's
 * loopback only. Link-local: it is nobody's address on any network.
 */
const NAMESERVER = "169.254.1.1";

/** In a `resolv.conf`. */
export const nameserverLine = `nameserver ${NAMESERVER}\n`;

/** What keeps `full` from working here, or `undefined`. */
export function fullNetworkProblem(): { detail: string; remedy: string } | undefined {
  for (const [program, debian] of [
    ["pasta", "passt"],
    ["ip", "iproute2"],
  ] as const) {
    if (findProgram(program) === undefined) {
      return { detail: `the program "${program}" is not installed`, remedy: `sudo apt install ${debian}` };
    }
  }
  const tun = statSync(TUN, { throwIfNoEntry: false });
  if (tun === undefined) return { detail: `${TUN} is not there`, remedy: "sudo modprobe tun" };
  if (!isRoot() && !openToAll(tun.mode)) {
    return { detail: `${TUN} may not be opened by a plain user`, remedy: `sudo chmod 0666 ${TUN}` };
  }
  return undefined;
}

export function assertFullNetwork(): void {
  const problem = fullNetworkProblem();
  if (problem === undefined) return;
  throw new HoldfastError("unsupported", `network "full" is not available here: ${problem.detail}`, {
    hint: `Run: ${problem.remedy}. Or create the sandbox with network: "none".`,
    started: "no",
  });
}

/**
 * A device node that only root may open does not help the sandbox's user. Root makes one that it may, in a mount
 * namespace of its own, so that nothing changes for the host. `prefix`: a command that starts a shell in one; `script`:
 * what that shell does.
 */
export function ownTunNode(): { prefix: string[]; script: string } | undefined {
  if (!isRoot() || openToAll(statSync(TUN).mode)) return undefined;
  const mount = `${programPath("mount")} -t tmpfs -o mode=0755 tmpfs /dev/net`;
  const mknod = `${programPath("mknod")} -m 0666 ${TUN} c 10 200`;
  return {
    prefix: [programPath("unshare"), "-m", "--propagation", "private"],
    script: `${mount} && ${mknod} || exit 1`,
  };
}

/** Makes the namespace and starts what follows in it. No port is opened on the host, in either direction. */
export function pastaCommand(): string[] {
  return [
    ...[programPath("pasta"), "--config-net", "--foreground", "--quiet"],
    ...["--tcp-ports", "none", "--udp-ports", "none", "--tcp-ns", "none", "--udp-ns", "none"],
    // Without this the gateway's address would lead to the host's loopback.
    ...["--no-map-gw", "--dns-forward", NAMESERVER, "--"],
  ];
}

/**
 * Commands for `ip -batch` that cut the sandbox off from every address of the host itself, of whatever interface:
 * services that listen on all addresses are not meant for what runs inside. The one that pasta gives to the sandbox
 * is its own there, so the route for it has no effect.
 */
export function blockedRoutes(): string {
  const v4 = ownAddresses4().filter((address) => !address.startsWith("127."));
  const v6 = ownAddresses6().filter((address) => address !== LOOPBACK6 && !isLinkLocal(address));
  const targets = [...v4.map((address) => `${address}/32`), ...v6.map((address) => `${address}/128`)];
  return targets.map((target) => `route add unreachable ${target}\n`).join("");
}

/**
 * The same for link-local addresses, for `ip -6 -batch`: who connects to one names the interface, and then the kernel
 * passes over a route that is not on it. A rule is asked before any route.
 */
export function blockedLinkLocals(): string {
  const targets = ownAddresses6().filter(isLinkLocal);
  return targets.map((address) => `rule add to ${address}/128 unreachable\n`).join("");
}

function isLinkLocal(address: string): boolean {
  return /^fe[89ab]/.test(address);
}

const LOOPBACK6 = "0000:0000:0000:0000:0000:0000:0000:0001";

/** From the kernel's own routing: lists of interfaces leave out those without a carrier, such as an idle bridge. */
function ownAddresses4(): string[] {
  const entries = readFileSync("/proc/net/fib_trie", "utf8").matchAll(/\|-- (\S+)\n\s+\/32 host LOCAL/g);
  return [...new Set([...entries].map((entry) => entry[1] ?? ""))];
}

function ownAddresses6(): string[] {
  // Not there where IPv6 is switched off: then nothing can be reached by it either.
  if (!existsSync("/proc/net/if_inet6")) return [];
  const lines = readFileSync("/proc/net/if_inet6", "utf8").matchAll(/^([0-9a-f]{32}) /gm);
  // Once each: two interfaces with one hardware address have the same link-local one.
  return [...new Set([...lines].map((line) => (line[1] ?? "").replace(/(.{4})(?!$)/g, "$1:")))];
}

function openToAll(mode: number): boolean {
  const needed = constants.S_IROTH | constants.S_IWOTH;
  return (mode & needed) === needed;
}
