import type { Claim, Clock, Holding, KeeperControl, Store } from "@holdfast/core";
import { checkClaim, hashOf, held, lost, standingClaim } from "./claims.ts";
import { within } from "./deadline.ts";
import type { Keepers } from "./keepers.ts";
import type { Sandboxes } from "./sandboxes.ts";
import type { NewId } from "./waker.ts";

/** A keeper that does not hear of a claim in time learns its number from the holder's first call. */
const TELL_MS = 5_000;

interface ClaimDeskDeps {
  readonly store: Store;
  readonly sandboxes: Pick<Sandboxes<KeeperControl>, "get">;
  readonly keepers: Keepers;
  readonly clock: Clock;
  readonly newId: NewId;
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
    const { store, sandboxes, newId } = this.#deps;
    for (;;) {
      const before = await sandboxes.get(idOrName);
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
      await this.#tell(holding, "required");
      return { holding, claim, token };
    }
  }

  async renew(
    idOrName: string,
    claimId: string,
    { token, ttlSeconds }: { token: string; ttlSeconds: number },
  ): Promise<{ holding: Holding; claim: Claim }> {
    const { store, sandboxes } = this.#deps;
    for (;;) {
      const before = await sandboxes.get(idOrName);
      const claim = { ...ownClaim(before, claimId, token), expiresAt: before.readAt + ttlSeconds * 1000 };
      const holding = await store.save(before, { sandbox: { claim } });
      if (holding !== undefined) return { holding: holding as Holding, claim };
    }
  }

  async release(idOrName: string, claimId: string, { token }: { token: string }): Promise<Holding> {
    const { store, sandboxes } = this.#deps;
    for (;;) {
      const before = await sandboxes.get(idOrName);
      const { holder, fence } = ownClaim(before, claimId, token);
      const entries = [{ type: "claim_released", actor: holder, detail: { holder, fence } }];
      const holding = (await store.save(before, { sandbox: { claim: null }, entries })) as
        | Holding
        | undefined;
      if (holding === undefined) continue;
      await this.#tell(holding, "free");
      return holding;
    }
  }

  /** So that a call of the last holder that is still on its way comes too late. */
  async #tell({ sandbox, lease }: Holding, state: "required" | "free"): Promise<void> {
    const { keepers, clock } = this.#deps;
    const link = lease === undefined ? undefined : keepers.link(lease.instanceId);
    if (link === undefined) return;
    const request = { fence: sandbox.claimFence, required: state === "required" };
    await within(clock, { ms: TELL_MS }, () => link.claimFence(request));
  }
}

function ownClaim(holding: Holding, claimId: string, token: string): Claim {
  const claim = checkClaim(holding, token);
  if (claim?.claimId === claimId) return claim;
  throw lost(holding, claim);
}
