import { readFileSync } from "node:fs";

/** A socket that listens, as the kernel lists it. */
export interface ListeningSocket {
  readonly port: number;
  /** As in /proc: hexadecimal, each group of four bytes in the machine's order. */
  readonly address: string;
  /** As a descriptor's link names it. */
  readonly inode: string;
}

/** All sockets that listen in this network namespace, over IPv4 and IPv6. */
export function listeningSockets(): ListeningSocket[] {
  return ["/proc/self/net/tcp", "/proc/self/net/tcp6"].flatMap(linesOf).flatMap(socketOf);
}

/** The ports that a connection to this machine itself reaches, in order. */
export function listeningPorts(): number[] {
  const reached = listeningSockets().filter(({ address }) => isLocal(address));
  return [...new Set(reached.map(({ port }) => port))].sort((a, b) => a - b);
}

/** "sl local_address rem_address st … uid timeout inode"; state 0A is LISTEN. */
function socketOf(line: string): ListeningSocket[] {
  const fields = line.trim().split(/\s+/);
  const [address, port] = fields[1]?.split(":") ?? [];
  if (address === undefined || port === undefined || fields[3] !== "0A") return [];
  return [{ address, port: Number.parseInt(port, 16), inode: `socket:[${fields[9]}]` }];
}

/** All addresses, or the loopback's: 127.0.0.1, ::1, or the former as IPv6 writes it. */
function isLocal(address: string): boolean {
  return (
    /^0+$/.test(address) ||
    /^[0-9A-F]{6}7F$/.test(address) ||
    address === "00000000000000000000000001000000" ||
    /^0{16}FFFF0000(0{8}|[0-9A-F]{6}7F)$/.test(address)
  );
}

function linesOf(file: string): string[] {
  try {
    return readFileSync(file, "latin1").split("\n").slice(1);
  } catch {
    return []; // a kernel without IPv6 has no tcp6
  }
}
