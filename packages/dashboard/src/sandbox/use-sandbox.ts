import { useQuery } from "@tanstack/react-query";
import { Sandbox, type SandboxInfo } from "holdfast";
import { about, listSandboxes, SANDBOXES } from "../live.ts";
import { client } from "../server.ts";

/** The sandbox with this id or name, as it is now; `undefined` while that is not known, `null` if there is none. */
export function useSandbox(idOrName: string): SandboxInfo | null | undefined {
  const { data } = useQuery({ queryKey: SANDBOXES, queryFn: listSandboxes });
  if (data === undefined) return undefined;
  return data.find(({ id, name }) => id === idOrName || name === idOrName) ?? null;
}

/** A handle for calls. It is made once and asks nothing by itself. */
export async function held(id: string): Promise<Sandbox> {
  const known = handles.get(id) ?? Sandbox.get(id, { client });
  handles.set(id, known);
  known.catch(() => handles.delete(id));
  return known;
}

const handles = new Map<string, Promise<Sandbox>>();

/** Something about this sandbox, asked with its handle, and asked anew when the sandbox changes. */
export function useAbout<T>(
  id: string,
  what: string | readonly string[],
  ask: (sandbox: Sandbox) => Promise<T>,
  { enabled = true } = {},
) {
  return useQuery({
    queryKey: about(id, ...[what].flat()),
    queryFn: async () => ask(await held(id)),
    enabled,
  });
}
