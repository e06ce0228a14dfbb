/** What a symlink holds is where it leads: no file has such an id. */
export function linkId(target: string): string {
  return `link ${target}`;
}

/**
 * Why a symlink is not synced, if it is not. Only one that stays in its directory is: any other would lead to something
 * else on the other side, and here to what the sandbox has chosen. `..` may be at the beginning only, where it is taken
 * from the link's own place; behind a name it would be taken from wherever that leads.
 */
export function whyNotLink(path: string, target: string): string | undefined {
  if (target.includes("\ufffd")) return "where it leads is not UTF-8";
  const parts = target.split("/").filter((part) => part !== "" && part !== ".");
  const up = parts.findIndex((part) => part !== "..");
  const ups = up === -1 ? parts.length : up;
  const staysInside = ups < path.split("/").length && !parts.slice(ups).includes("..");
  const isRelative = !/^\/|^[a-z]:|\\/i.test(target);
  return isRelative && staysInside ? undefined : `it leads out of the directory, to ${target}`;
}
