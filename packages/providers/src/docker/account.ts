import { inside } from "../local/inside.ts";

/** The files in which programs look up who a user id is. */
export const accountFiles = ["/etc/passwd", "/etc/group"] as const;
export type AccountFile = (typeof accountFiles)[number];

/**
 * The file with a line for our user added: without one a shell greets with "I have no name!", and ssh refuses to
 * work. `undefined` where the image has one for the id already, under whatever name.
 */
export function withAccount(file: AccountFile, text: string, uid: number): string | undefined {
  const lines = text.split("\n").filter((line) => line !== "");
  const fields = lines.map((line) => line.split(":"));
  if (fields.some(([, , id]) => id === String(uid))) return undefined;
  const name = fields.some(([taken]) => taken === inside.user) ? `${inside.user}-${uid}` : inside.user;
  const added =
    file === "/etc/passwd" ? `${name}:x:${uid}:${uid}::${inside.home}:/bin/sh` : `${name}:x:${uid}:`;
  const before = lines.length > 0 ? lines : [rootLine[file]];
  return `${[...before, added].join("\n")}\n`;
}

/** For an image that has no such file. */
const rootLine: Readonly<Record<AccountFile, string>> = {
  "/etc/passwd": "root:x:0:0::/:/bin/sh",
  "/etc/group": "root:x:0:",
};
