import type { Claim, Clock, Holding, KeeperControl, SandboxRow, Store } from "@holdfast/core";
import { HoldfastError } from "@holdfast/protocol";
import { checkClaim, hashOf, held, lost, standingClaim } from "./claims.ts";
import { within } from "./deadline.ts";
import type { Keepers } from "./keepers.ts";
import type { NewId } from "./new-lease.ts";

/** A keeper that does not hear of a claim in time learns its number from the holder's first call. */
const TELL_MS = 5_000;

interface ClaimDeskDeps {
  readonly store: Store;
  readonly get: (idOrName: string) => Promise<Holding>;
  readonly keepers: Keepers;
  readonly clock: Clock;
  readonly newId: NewId;
  readonly kick: (sandboxId: string) => void;
}

/** Gives out exclusive holds on sandboxes, one at a time, each with a higher number than the last. */
export class ClaimDesk {
  readonly #deps: ClaimDeskDeps;

  constructor(deps: ClaimDeskDeps) {
    this.#deps = deps;
  }

  /** `takeover`: from whoever holds it now; both names are in the timeline then. */
  async claim(
    idOrName: string,
    { holder, ttlSeconds, takeover }: { holder: string; ttlSeconds: number; takeover: boolean },
  ): Promise<{ holding: Holding; claim: Claim; token: string }> {
    const { store, get, newId } = this.#deps;
    for (;;) {
      const before = await get(idOrName);
      const standing = standingClaim(before);
      if (standing !== undefined && !takeover) throw held(before, standing);
      const token = newId("secret");
      const fence = before.sandbox.claimFence + 1;
      const expiresAt = before.readAt + ttlSeconds * 1000;
      const claim: Claim = { claimId: newId("claim"), holder, fence, tokenHash: hashOf(token), expiresAt };
      const detail = { holder, fence, ...(standing !== undefined && { from: standing.holder }) };
      const type = standing === undefined ? "claimed" : "claim_taken_over";
      const change = { sandbox: { claim, claimFence: fence }, entries: [{ type, actor: holder, detail }] };
      const holding = (await store.save(before, change)) as Holding | undefined;
      if (holding === undefined) continue;
      await this.#tell(holding);
      return { holding, claim, token };
    }
  }

  async renew(
    idOrName: string,
    claimId: string,
    { token, ttlSeconds }: { token: string; ttlSeconds: number },
  ): Promise<{ holding: Holding; claim: Claim }> {
    const { store, get } = this.#deps;
    for (;;) {
      const before = await get(idOrName);
      const claim = { ...ownClaim(before, claimId, token), expiresAt: before.readAt + ttlSeconds * 1000 };
      const holding = await store.save(before, { sandbox: { claim } });
      if (holding !== undefined) return { holding: holding as Holding, claim };
    }
  }

  async release(idOrName: string, claimId: string, { token }: { token: string }): Promise<Holding> {
    for (;;) {
      const before = await this.#deps.get(idOrName);
      const claim = ownClaim(before, claimId, token);
      const holding = await this.#end(before, { type: "claim_released", claim });
      if (holding !== undefined) return holding;
    }
  }

  /** A claim whose time is over is ended by the first call that finds it so: until then the keeper still asks for it. */
  async lapsed(first: Holding): Promise<Holding> {
    let holding = first;
    for (;;) {
      const { claim } = holding.sandbox;
      if (claim === null || standingClaim(holding) !== undefined) return holding;
      const ended = await this.#end(holding, { type: "claim_expired", claim });
      if (ended !== undefined) return ended;
      holding = await this.#deps.get(holding.sandboxId);
    }
  }

  /** Its number is passed over, so that word of it which is still on its way to the keeper comes too late. */
  async #end(before: Holding, { type, claim }: { type: string; claim: Claim }): Promise<Holding | undefined> {
    const { holder, fence } = claim;
    const holding = (await this.#deps.store.save(before, {
      sandbox: { claim: null, claimFence: before.sandbox.claimFence + 1 },
      entries: [{ type, actor: holder, detail: { holder, fence } }],
    })) as Holding | undefined;
    if (holding !== undefined) await this.#tell(holding);
    return holding;
  }

  /**
   * So that a call of the last holder that is still on its way comes too late. A keeper that does not answer is told when
   * it is reached anew, before any other call: the claim is written, and whoever made it must get its token.
   */
  async #tell({ sandbox, lease, sandboxId }: Holding): Promise<void> {
    const { keepers, clock, kick } = this.#deps;
    const link = lease === undefined ? undefined : keepers.link(lease.instanceId);
    if (lease === undefined || link === undefined) return;
    try {
      await within(clock, { ms: TELL_MS }, () => sayClaim(link, sandbox));
    } catch (error) {
      // It knows of a later one.
      if (error instanceof HoldfastError && error.code === "claim_lost") throw error;
      keepers.drop(lease.instanceId);
      kick(sandboxId);
    }
  }
}

/** Tells a keeper which claim counts. One that is too old to know of claims has only the server's word for them. */
export async function sayClaim(
  link: KeeperControl,
  { claim, claimFence }: Pick<SandboxRow, "claim" | "claimFence">,
): Promise<void> {
  if (claimFence === 0) return;
  try {
    await link.claimFence({ fence: claimFence, required: claim !== null });
  } catch (error) {
    if (!(error instanceof HoldfastError && error.code === "unsupported")) throw error;
  }
}

function ownClaim(holding: Holding, claimId: string, token: string): Claim {
  const claim = checkClaim(holding, token);
  if (claim?.claimId === claimId) return claim;
  throw lost(holding, claim);
}
