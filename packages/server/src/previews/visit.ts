import type { ExposedPort, Holding } from "@holdfast/core";
import type { KeeperLink, PortConnection } from "@holdfast/keeper-link";
import { HoldfastError } from "@holdfast/protocol";
import type { Lifecycle } from "../lifecycle/lifecycle.ts";
import { portOf } from "../lifecycle/ports.ts";
import { isToken, type PreviewName } from "./preview-name.ts";

type Sandboxes = Lifecycle<KeeperLink>["sandboxes"];

/** An exposed port, and the sandbox it is of, as they are now. */
export interface Found {
  readonly holding: Holding;
  readonly exposed: ExposedPort;
}

/** `tokens`: what the visitor has to show beside the name. `undefined` for all reasons alike. */
export async function findPreview(
  sandboxes: Sandboxes,
  name: PreviewName,
  tokens: readonly string[] = [],
): Promise<Found | undefined> {
  const holding = await sandboxes.get(name.sandboxId).catch(absent);
  // A name may look like an id.
  if (holding === undefined || holding.sandboxId !== name.sandboxId) return undefined;
  const exposed = portOf(holding, name.port);
  if (exposed === undefined) return undefined;
  const isShown = [name.token, ...tokens].some((token) => isToken(token, exposed.token));
  return isShown ? { holding, exposed } : undefined;
}

function absent(error: unknown): undefined {
  if (error instanceof HoldfastError && (error.code === "not_found" || error.code === "gone"))
    return undefined;
  throw error;
}

/** A keeper that was told to rest is stopped in the next moments, or goes on. */
const ATTEMPTS = 10;
const PAUSE_MS = 300;

/** A connection to the program, in a sandbox that runs, or is woken if it was exposed so. Counts as use. */
export async function reachInside(
  sandboxes: Sandboxes,
  { holding, exposed }: Found,
): Promise<PortConnection> {
  for (let attempt = 1; ; attempt++) {
    const now = attempt === 1 ? holding : await sandboxes.get(holding.sandboxId);
    const { link } = await sandboxes.visit(now, exposed);
    try {
      return await link.connectPort(exposed.port);
    } catch (error) {
      const isResting = error instanceof HoldfastError && error.code === "quiesced";
      if (!isResting || attempt === ATTEMPTS) throw error;
      await Bun.sleep(PAUSE_MS);
    }
  }
}
