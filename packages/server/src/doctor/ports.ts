import { readdirSync, readFileSync, readlinkSync } from "node:fs";
import { createServer } from "node:net";
import type { Check } from "@holdfast/core";
import type { Config } from "../config.ts";

/** Whether a server could listen, and if not, who does. */
export async function examinePorts({ host, port, previewPort }: Config): Promise<Check[]> {
  if (port === 0) return [];
  const preview = previewPort ?? port + 1;
  return [
    await checkPort("port", { host, port, option: "--port" }),
    ...(preview === 0
      ? []
      : [await checkPort("preview port", { host, port: preview, option: "--preview-port" })]),
  ];
}

interface Wanted {
  host: string;
  port: number;
  option: string;
}

async function checkPort(name: string, { host, port, option }: Wanted): Promise<Check> {
  const problem = await problemWith(host, port);
  if (problem === undefined) return { name, ok: true, required: true, detail: `${host}:${port} is free` };
  const failed = { name, ok: false, required: true };
  if (problem === "EADDRNOTAVAIL" || problem === "ENOTFOUND")
    return {
      ...failed,
      detail: `${host} is no address of this machine`,
      remedy: "Leave out --host, or give an address that `ip address` shows",
    };
  if (problem === "EACCES")
    return {
      ...failed,
      detail: `a plain user may not listen on port ${port}`,
      remedy: `Choose one above 1023: ${option} 4750`,
    };
  const owner = ownerOf(port);
  const who = owner === undefined ? "another program" : `${owner.program} (pid ${owner.pid})`;
  if (await isHoldfast(host, port))
    return { name, ok: true, required: true, detail: `a Holdfast server listens on ${host}:${port}: ${who}` };
  const end = owner === undefined ? "" : ` end it (kill ${owner.pid}), or`;
  return {
    ...failed,
    detail: `${host}:${port} is taken by ${who}`,
    remedy: `If it is not needed,${end} choose another: ${option} PORT, or 0 for any`,
  };
}

function problemWith(host: string, port: number): Promise<string | undefined> {
  return new Promise((resolve) => {
    const trial = createServer();
    trial.once("error", (error: NodeJS.ErrnoException) => resolve(error.code ?? error.message));
    trial.listen({ host, port }, () => trial.close(() => resolve(undefined)));
  });
}

/** Its API says so to everybody; its previews have a page for whoever names none. */
async function isHoldfast(host: string, port: number): Promise<boolean> {
  try {
    const answer = await fetch(`http://${host}:${port}/healthz`, { signal: AbortSignal.timeout(1000) });
    return answer.headers.has("Holdfast-Request-Id") || (await answer.text()).includes("no such preview");
  } catch {
    return false;
  }
}

const LISTENING = "0A";

/** By the kernel's lists; of another user's program a plain user sees nothing. */
function ownerOf(port: number): { program: string; pid: string } | undefined {
  const wanted = port.toString(16).toUpperCase().padStart(4, "0");
  const inodes = ["/proc/net/tcp", "/proc/net/tcp6"]
    .flatMap((file) => (readIfThere(file) ?? "").split("\n").slice(1))
    .map((line) => line.trim().split(/\s+/))
    .filter(([, local = "", , state]) => state === LISTENING && local.endsWith(`:${wanted}`))
    .map((fields) => `socket:[${fields[9]}]`);
  const pid = readdirSync("/proc").find((one) => /^\d+$/.test(one) && holds(one, inodes));
  return pid === undefined
    ? undefined
    : { program: readIfThere(`/proc/${pid}/comm`)?.trim() ?? "a program", pid };
}

function holds(pid: string, sockets: readonly string[]): boolean {
  try {
    return readdirSync(`/proc/${pid}/fd`).some((fd) => sockets.includes(linkOf(`/proc/${pid}/fd/${fd}`)));
  } catch {
    return false; // it has ended, or is not ours to look at
  }
}

function linkOf(path: string): string {
  try {
    return readlinkSync(path);
  } catch {
    return "";
  }
}

function readIfThere(path: string): string | undefined {
  try {
    return readFileSync(path, "utf8");
  } catch {
    return undefined;
  }
}
