import { HoldfastError } from "@holdfast/protocol";
import { isRoot } from "../local/host-user.ts";
import { inside } from "../local/inside.ts";
import type { AccountTexts } from "./account.ts";
import type { Info } from "./engine-types.ts";

/** Who keeper and work are inside; they are one user. */
export interface Account {
  readonly uid: number;
  readonly gid: number;
  /** What `USER` says. */
  readonly name: string;
}

/**
 * What root of a container may do beyond its own files, so that `apt-get install` works: own, open and change what
 * others own, and become them. Nothing of the network, of devices, of mounts, or of processes outside.
 */
export const rootCapabilities = ["CHOWN", "DAC_OVERRIDE", "FOWNER", "FSETID", "SETGID", "SETUID", "KILL"];

/** Which users a container's work may be, as files are shared with it: see `assertUser`. */
export type UserIds = "any" | "own" | "mapped";

export function userIdsOf(info: Info): UserIds {
  if (isRoot()) return "any";
  // Its containers can be told which of their users is the one that runs it.
  return info.Rootless === true ? "mapped" : "own";
}

/** Without a word about it: one without rights. A server of a plain user shares files with it under its own id alone. */
function defaultAccount(ids: UserIds): Account {
  const uid = ids === "own" ? (process.getuid?.() ?? inside.uid) : inside.uid;
  return { uid, gid: uid, name: inside.user };
}

/** Who is meant, if the image need not be asked for that. */
export function plainAccount(user: string | undefined, ids: UserIds): Account | undefined {
  if (user === undefined) return defaultAccount(ids);
  const [, uid, gid] = /^(\d+):(\d+)$/.exec(user) ?? [];
  if (uid === undefined || gid === undefined) return undefined;
  return { uid: Number(uid), gid: Number(gid), name: uid === "0" ? "root" : inside.user };
}

/** By the image's own lists; root is there also where it has none. */
export function accountIn(texts: AccountTexts, user: string): Account {
  const [who = "", group] = user.split(":");
  const users = linesOf(texts["/etc/passwd"]);
  const found = users.find(([name, , id]) => name === who || id === who);
  const isRootMeant = who === "root" || who === "0";
  const uid = found === undefined ? (isRootMeant ? 0 : idOf(who)) : idOf(found[2]);
  if (uid === undefined) throw unknown("user", who, users);
  const primary = found === undefined ? uid : (idOf(found[3]) ?? uid);
  const gid = group === undefined ? primary : groupIn(texts, group);
  return { uid, gid, name: found?.[0] ?? (uid === 0 ? "root" : inside.user) };
}

/** A file of another host user's is none that we could share with the container. */
export function assertUser({ uid }: Account, ids: UserIds): void {
  const own = process.getuid?.();
  if (uid <= MAX_ID && (ids !== "own" || uid === own)) return;
  const why =
    uid > MAX_ID ? "there is no such id" : `this server is of user ${own}, and shares files with it alone`;
  throw new HoldfastError("unsupported", `work cannot run as user ${uid}: ${why}`, {
    hint: "Leave out `user`, or let the server run as root.",
    started: "no",
  });
}

/** The kernel's last one but those that mean "none". */
const MAX_ID = 2 ** 31 - 1;

function groupIn(texts: AccountTexts, group: string): number {
  const groups = linesOf(texts["/etc/group"]);
  const found = groups.find(([name, , id]) => name === group || id === group);
  const gid = found === undefined ? idOf(group) : idOf(found[2]);
  if (gid === undefined) throw unknown("group", group, groups);
  return gid;
}

function linesOf(text: string): string[][] {
  return text.split("\n").map((line) => line.split(":"));
}

function idOf(text: string | undefined): number | undefined {
  return text !== undefined && /^\d{1,10}$/.test(text) ? Number(text) : undefined;
}

function unknown(kind: "user" | "group", name: string, lines: readonly string[][]): HoldfastError {
  const known = lines.map(([one]) => one).filter(Boolean);
  return new HoldfastError("launch_failed", `the image has no ${kind} ${name}`, {
    hint:
      known.length === 0 ? "It has no list of them: give numbers, UID:GID." : `It has: ${known.join(", ")}`,
    started: "no",
  });
}
