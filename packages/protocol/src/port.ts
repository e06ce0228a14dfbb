import { z } from "zod";
import { lazily } from "./lazily.ts";

export const PortNumber = lazily(() => z.number().int().min(1).max(65_535));

export const ExposePort = lazily(() =>
  z.strictObject({
    port: PortNumber,
    /** A visit starts the sandbox if it is stopped. Otherwise a visit never does. */
    wake: z.boolean().optional(),
    /** The address has no token in it: whoever knows the sandbox's id and the port can visit. */
    public: z.boolean().optional(),
  }),
);
export type ExposePort = z.infer<typeof ExposePort>;

/** A port of a sandbox that has an address outside. Whoever has the address can visit it. */
export const Port = lazily(() =>
  z.object({
    port: PortNumber,
    url: z.string(),
    /**
     * Also leads there: the first visit turns its token into a cookie. For networks where a name is seen that nobody else
     * may use.
     */
    cookieUrl: z.string().optional(),
    createdAt: z.string(),
    wake: z.boolean(),
    public: z.boolean(),
  }),
);
export type Port = z.infer<typeof Port>;

/** A port that is exposed, or that something inside listens on, or both. */
export const SandboxPort = lazily(() =>
  Port.partial().extend({
    port: PortNumber,
    /** Something inside listens there now, where a visit reaches it. */
    listening: z.boolean(),
  }),
);
export type SandboxPort = z.infer<typeof SandboxPort>;

export const PortList = lazily(() => z.object({ ports: z.array(SandboxPort) }));

/** What the keeper sees listening, in order. */
export const ListeningPorts = lazily(() => z.object({ ports: z.array(PortNumber) }));
export type ListeningPorts = z.infer<typeof ListeningPorts>;
