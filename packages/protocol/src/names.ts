import { z } from "zod";
import { CHOSEN_ID } from "./chosen-id.ts";
import { lazily } from "./lazily.ts";

export const ChosenId = lazily(() =>
  z.string().regex(CHOSEN_ID, "1 to 100 of letters, digits, _ . -, beginning with a letter or digit"),
);

/** A sandbox's name: a DNS label, because it becomes a host name inside and a part of preview URLs. */
export const SandboxName = lazily(() =>
  z
    .string()
    .regex(/^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$/, "1 to 63 of a-z, 0-9 and -, not at an end")
    // Ids and names are looked up in one place: a name that is somebody's id would be a trap.
    .refine((name) => !/^sbx[0-9a-z]{13}$/.test(name), "looks like an id: choose another name"),
);

const noNul = (text: string): boolean => !text.includes("\0");

export const TextWithoutNul = lazily(() => z.string().refine(noNul, "must not contain a NUL character"));

export const AbsolutePath = lazily(() =>
  TextWithoutNul.refine((path) => path.startsWith("/"), "must be an absolute path").refine(
    (path) => new TextEncoder().encode(path).length <= 4095,
    "longer than the kernel takes (4095 bytes)",
  ),
);

const EnvName = lazily(() =>
  z.string().regex(/^[A-Za-z_][A-Za-z0-9_]*$/, "a name of letters, digits and _, not beginning with a digit"),
);

/** Later layers win; `null` unsets. */
export const Env = lazily(() => z.record(EnvName, TextWithoutNul.nullable()));
export type Env = z.infer<typeof Env>;

export const DurationMs = lazily(() =>
  z
    .number()
    .int()
    .min(0)
    .max(2 ** 31 - 1, "at most 24 days"),
);
