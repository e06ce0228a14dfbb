import { z } from "zod";
import { lazily } from "./lazily.ts";

/** What a sandbox's own world is made of: nothing may be put over these, nor below the first four. */
const systemPlaces = ["/proc", "/sys", "/dev", "/.holdfast"];
const ownPlaces = [
  "/",
  "/workspace",
  "/home",
  "/home/user",
  "/etc",
  "/usr",
  "/bin",
  "/lib",
  "/lib64",
  "/sbin",
];

const AbsolutePath = lazily(() =>
  z
    .string()
    .max(1000)
    .regex(/^\/[^\0]*$/, "must be an absolute path")
    .refine(isPlain, "must be a plain path, without //, . or .., and without a slash at its end"),
);

/** Where something is seen inside. */
export const InsidePath = lazily(() =>
  AbsolutePath.refine(
    (path) => !ownPlaces.includes(path) && !systemPlaces.some((place) => isWithin(path, place)),
    `must not be one of ${[...ownPlaces, ...systemPlaces].join(", ")}, which a sandbox needs itself`,
  ),
);

/** A directory or a file of the provider's machine, where its operator allows that. */
export const Mount = lazily(() =>
  z.strictObject({
    /** On the provider's machine. */
    source: AbsolutePath,
    /** Inside. */
    target: InsidePath,
    /** Without it, the work can only read. */
    writable: z.boolean().optional(),
  }),
);
export type Mount = z.infer<typeof Mount>;

const MOST_MOUNTS = 32;

export const Mounts = lazily(() =>
  z
    .array(Mount)
    .max(MOST_MOUNTS)
    .refine(
      (mounts) => new Set(mounts.map(({ target }) => target)).size === mounts.length,
      "two of them have the same target",
    ),
);

/** Places in memory, and how many MiB each may hold; `/tmp` is one in any case. */
export const Tmpfs = lazily(() =>
  z
    .record(InsidePath, z.number().int().min(1))
    .refine((places) => Object.keys(places).length <= MOST_MOUNTS, `at most ${MOST_MOUNTS} places`),
);

/** Whether `path` is `place`, or below it. Of plain paths. */
export function isWithin(path: string, place: string): boolean {
  return path === place || path.startsWith(place === "/" ? "/" : `${place}/`);
}

function isPlain(path: string): boolean {
  const parts = path.split("/").slice(1);
  return path === "/" || parts.every((part) => part !== "" && part !== "." && part !== "..");
}
