import { type Client, HoldfastError, Sandbox } from "holdfast";
import { closest } from "./closest.ts";

/** The sandbox that is meant by a name, an id, or the beginning of an id that only one has. */
export async function findSandbox(client: Client, meant: string): Promise<Sandbox> {
  const found = await Sandbox.get(meant, { client }).catch(unlessNotFound);
  if (found !== undefined) return found;
  const all = await Sandbox.list({ client });
  const names = all.map(({ name }) => name);
  const ids = all.map(({ id }) => id);
  const id = byPrefix(ids, meant, { what: "sandbox", list: "holdfast ls", names });
  return all.find((sandbox) => sandbox.id === id) ?? Sandbox.get(id, { client });
}

/** The only id that begins so. Throws what was probably meant, if there is none, or how many there are. */
export function byPrefix(
  ids: readonly string[],
  meant: string,
  { what, list, names = [] }: { what: string; list: string; names?: readonly string[] },
): string {
  const found = ids.filter((id) => id.startsWith(meant));
  const [only] = found;
  if (only !== undefined && found.length === 1) return only;
  if (found.length > 1) throw ambiguous(found, meant);
  const near = closest(meant, [...names, ...ids]);
  throw new HoldfastError("not_found", `there is no ${what} "${meant}"`, {
    hint: near === undefined ? `\`${list}\` shows which there are.` : `Did you mean "${near}"?`,
  });
}

export function unlessNotFound(error: unknown): undefined {
  if (!(error instanceof HoldfastError) || error.code !== "not_found") throw error;
}

function ambiguous(found: readonly string[], meant: string): HoldfastError {
  const shown = found.slice(0, 5).join(", ");
  const more = found.length > 5 ? ", …" : "";
  return new HoldfastError("invalid_argument", `"${meant}" is the beginning of ${found.length} ids`, {
    hint: `Write more of it: ${shown}${more}`,
  });
}
