import { inside } from "../local/inside.ts";

/** The files in which programs look up who a user id is. */
export const accountFiles = ["/etc/passwd", "/etc/group"] as const;
export type AccountFile = (typeof accountFiles)[number];
/** What an image has in them; empty where it has none. */
export type AccountTexts = Readonly<Record<AccountFile, string>>;

/**
 * The file with a line for our user added: without one a shell greets with "I have no name!", and ssh refuses to
 * work. `undefined` where the image has one for the id already, under whatever name.
 */
export function withAccount(
  file: AccountFile,
  text: string,
  { uid, gid }: { uid: number; gid: number },
): string | undefined {
  const own = file === "/etc/passwd" ? uid : gid;
  const lines = text.split("\n").filter((line) => line !== "");
  const fields = lines.map((line) => line.split(":"));
  if (fields.some(([, , id]) => id === String(own))) return undefined;
  const name = fields.some(([taken]) => taken === inside.user) ? `${inside.user}-${own}` : inside.user;
  const added =
    file === "/etc/passwd" ? `${name}:x:${uid}:${gid}::${inside.home}:/bin/sh` : `${name}:x:${gid}:`;
  const before = lines.length > 0 ? lines : [rootLine[file]];
  // An image without a list knows root all the same.
  return own === 0 ? `${before.join("\n")}\n` : `${[...before, added].join("\n")}\n`;
}

/** For an image that has no such file. */
const rootLine: Readonly<Record<AccountFile, string>> = {
  "/etc/passwd": "root:x:0:0::/:/bin/sh",
  "/etc/group": "root:x:0:",
};
