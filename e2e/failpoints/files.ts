/**
 * What the providers get instead of `node:fs/promises`: every change to a copy of a disk, or to a disk that is made from
 * one, has a point on each side. So do the programs that they copy and remove trees with: after those have begun is in
 * the middle of their work.
 */
import * as fs from "node:fs/promises";
import { basename } from "node:path";
import { type Method, passing, wrapped } from "./wrapped.ts";

export * from "node:fs/promises";

export const rename = withPoints("rename", fs.rename);
export const mkdir = withPoints("mkdir", fs.mkdir);
export const open = withPoints("open", fs.open);

function withPoints<Call>(name: string, call: Call): Call {
  return wrapped(([path]) => labelOf(name, String(path)), call as Method) as Call;
}

const { spawn } = Bun;
Object.assign(Bun, {
  spawn: (argv: string[], ...rest: unknown[]) => {
    const program = argv.map((arg) => basename(arg)).find((arg) => ["cp", "rm", "sync"].includes(arg));
    const label = program && labelOf(program, argv.at(-1) ?? "");
    const after = label === undefined || label === "" ? () => {} : passing(label);
    const child = (spawn as Method)(argv, ...rest);
    after();
    return child;
  },
});

/** By what it is, without the ids in it. Only drafts, and snapshots under their own names. */
function labelOf(what: string, path: string): string | undefined {
  const place = /\/(snapshots|sandboxes)\/(\.new-)?[^/.][^/]*(\/.+)?$/.exec(path);
  if (place === null || (place[1] === "sandboxes" && place[2] === undefined)) return undefined;
  const [, folder, draft = "", rest = ""] = place;
  return `files.${what}(${folder}/${draft}*${rest})`;
}
