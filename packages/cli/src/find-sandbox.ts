import { type Client, HoldfastError, Sandbox } from "holdfast";
import { closest } from "./closest.ts";

/** The sandbox that is meant by a name, an id, or the beginning of an id that only one has. */
export async function findSandbox(client: Client, meant: string): Promise<Sandbox> {
  try {
    return await Sandbox.get(meant, { client });
  } catch (error) {
    if (!(error instanceof HoldfastError) || error.code !== "not_found") throw error;
    return byPrefix(await Sandbox.list({ client }), meant);
  }
}

function byPrefix(all: readonly Sandbox[], meant: string): Sandbox {
  const found = all.filter((sandbox) => sandbox.id.startsWith(meant));
  const [only] = found;
  if (only !== undefined && found.length === 1) return only;
  if (found.length > 1) throw ambiguous(found, meant);
  const near = closest(
    meant,
    all.flatMap((sandbox) => [sandbox.name, sandbox.id]),
  );
  throw new HoldfastError("not_found", `there is no sandbox "${meant}"`, {
    hint: near === undefined ? "`holdfast ls` shows which there are." : `Did you mean "${near}"?`,
  });
}

function ambiguous(found: readonly Sandbox[], meant: string): HoldfastError {
  const ids = found.slice(0, 5).map((sandbox) => sandbox.id);
  const more = found.length > ids.length ? ", …" : "";
  return new HoldfastError("invalid_argument", `"${meant}" is the beginning of ${found.length} ids`, {
    hint: `Write more of it: ${ids.join(", ")}${more}`,
  });
}
