import { type ErrorCode, HoldfastError } from "@holdfast/protocol";
import { codeOf } from "../engine/disk-errors.ts";
import { outside, type Target } from "./paths.ts";

type Telling = readonly [code: ErrorCode, message: string, hint?: string];

const tellings: Readonly<Record<string, Telling>> = {
  ENOENT: [
    "not_found",
    "there is no",
    "list the directory above it; a write makes missing ones with `parents`",
  ],
  EACCES: ["forbidden", "the sandbox's user may not do this with"],
  EPERM: ["forbidden", "the sandbox's user may not do this with"],
  EROFS: [
    "forbidden",
    "is on a file system that cannot be written:",
    "write below /workspace, /tmp or the home",
  ],
  EEXIST: ["already_exists", "there is something already under", "say `overwrite`, or take another name"],
  ENOTDIR: ["wrong_state", "a part of the path is no directory:"],
  EISDIR: ["wrong_state", "is a directory:"],
  ENOTEMPTY: ["wrong_state", "the directory is not empty:", "say `recursive` to delete it with all it has"],
  EBUSY: ["wrong_state", "is in use as a mount or a working place:", "delete or move what is in it instead"],
  EXDEV: ["wrong_state", "is on another file system:", "copy and delete, for example with `mv` in exec"],
  EINVAL: ["invalid_argument", "cannot be done with"],
  ELOOP: ["forbidden", "a symlink is in the way of", "it leads in a circle, or to where it may not lead"],
  ENAMETOOLONG: ["invalid_argument", "the name is too long:"],
  ETXTBSY: ["wrong_state", "is a program that runs:"],
  EMFILE: ["limit_reached", "too many files are open to use", "try again in a moment"],
  ENFILE: ["limit_reached", "too many files are open to use", "try again in a moment"],
};

const full: Telling = ["disk_full", "the disk is full; could not write", "delete files, then try again"];

/** What the kernel refused, in words; anything else as it is. */
function failureOf(error: unknown, { path, root }: Target): unknown {
  if (error instanceof HoldfastError) return error;
  const errno = codeOf(error);
  if (errno === undefined) return error;
  if (errno === "EXDEV" && root !== undefined) return outside({ path, root });
  const telling = errno === "ENOSPC" || errno === "EDQUOT" ? full : tellings[errno];
  if (telling === undefined) return error;
  const [code, message, hint] = telling;
  return new HoldfastError(code, `${message} ${path}`, {
    ...(hint !== undefined && { hint }),
    details: { path: path.toString(), errno },
    cause: error,
  });
}

/** Runs `work` about a target; what the kernel refuses becomes our error. */
export async function about<T>(target: Target, work: () => T | Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    throw failureOf(error, target);
  }
}
