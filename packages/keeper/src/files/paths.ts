import { HoldfastError } from "@holdfast/protocol";
import { type Fd, O, open, resolve } from "./fs-calls.ts";

/** A path as it was asked for: bytes, absolute; with a root that nothing on the way may leave, if one was given. */
export interface Target {
  readonly path: Buffer;
  readonly root: Buffer | undefined;
  /** Below its root no link is followed: none may be on the way, and one at the end is itself what is meant. */
  readonly links?: "never";
}

/** A directory, open, and a name in it. The name is empty where the path is the directory itself. */
export interface Spot extends Disposable {
  readonly dirFd: number;
  readonly name: Buffer;
}

const MOST_PATH_BYTES = 4095; // the kernel's own bound
const SLASH = 0x2f;

/** Reads `name` (and `root`) from the query as bytes: percent-encoding can say names that are not UTF-8. */
export function targetIn(url: string, name = "path"): Target {
  const path = pathIn(url, name);
  if (path === undefined) throw invalid(`the query must have a ${name}`);
  const root = pathIn(url, "root");
  if (root !== undefined && !isBelow(path, root)) throw outside({ path, root });
  return { path, root };
}

/** Opens what the path leads to, symlinks and all. */
export function openTarget({ path, root, links }: Target, flags: number): Fd {
  if (root === undefined) return open(path, { flags, resolve: resolve.freely });
  using top = openRoot(root);
  const how = links === "never" ? resolve.plainly : resolve.beneath;
  return open(below(path, root), { at: top.fd, flags, resolve: how });
}

/** Opens the directory that the path's last name is in. That name itself is not looked at. */
export function openSpot(target: Target): Spot {
  const { path, root } = target;
  const end = path.lastIndexOf(SLASH);
  const name = path.subarray(end + 1);
  if (name.toString("latin1") === "..") throw invalid("the last part of a path may not be ..");
  const isRoot = root !== undefined ? path.equals(root) : path.length === 1;
  const parent = isRoot ? path : path.subarray(0, Math.max(end, 1));
  const dir = openTarget({ ...target, path: parent }, O.PATH | O.DIRECTORY);
  return {
    dirFd: dir.fd,
    name: isRoot ? Buffer.alloc(0) : name,
    [Symbol.dispose]: () => dir[Symbol.dispose](),
  };
}

/** A name below a path. */
export function joined(path: Buffer, name: Uint8Array): Buffer {
  return path.length === 1 ? Buffer.concat([path, name]) : Buffer.concat([path, Buffer.from("/"), name]);
}

export function outside({ path, root }: { path: Buffer; root: Buffer }): HoldfastError {
  return new HoldfastError("forbidden", `${path} is not below the root ${root}, or leads out of it`, {
    hint: "a path must stay below its root on its whole way: no .. and no symlink may lead out",
    details: { path: path.toString() },
    started: "no",
  });
}

function openRoot(root: Buffer): Fd {
  return open(root, { flags: O.PATH | O.DIRECTORY, resolve: resolve.freely });
}

function below(path: Buffer, root: Buffer): Buffer {
  const rest = root.length === 1 ? path.subarray(1) : path.subarray(root.length + 1);
  return rest.length === 0 ? Buffer.from(".") : rest;
}

function isBelow(path: Buffer, root: Buffer): boolean {
  if (root.length === 1 || path.equals(root)) return true;
  return path.subarray(0, root.length).equals(root) && path[root.length] === SLASH;
}

function pathIn(url: string, name: string): Buffer | undefined {
  const at = url.indexOf("?");
  const pairs = at === -1 ? [] : url.slice(at + 1).split("&");
  const found = pairs.find((pair) => pair.startsWith(`${name}=`));
  if (found === undefined) return undefined;
  const path = decoded(found.slice(name.length + 1));
  if (path[0] !== SLASH) throw invalid(`${name} must be absolute: begin it with /`);
  if (path.includes(0)) throw invalid(`${name} may not have a NUL`);
  if (path.length > MOST_PATH_BYTES) throw invalid(`${name} may have at most ${MOST_PATH_BYTES} bytes`);
  let end = path.length;
  while (end > 1 && path[end - 1] === SLASH) end--;
  return path.subarray(0, end);
}

/** As a form is decoded, but to bytes: what is not UTF-8 stays as it is. */
function decoded(text: string): Buffer {
  const escaped = text.replaceAll("+", " ").replace(/[^\x20-\x7e]/g, encodeURIComponent);
  return Buffer.from(
    escaped.replace(/%([0-9a-f]{2})/gi, (_, hex: string) => String.fromCharCode(Number.parseInt(hex, 16))),
    "latin1",
  );
}

function invalid(message: string): HoldfastError {
  return new HoldfastError("invalid_argument", message, { started: "no" });
}
