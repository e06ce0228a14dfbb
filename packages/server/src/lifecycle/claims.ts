import { createHash, timingSafeEqual } from "node:crypto";
import type { Claim, Holding } from "@holdfast/core";
import { HoldfastError } from "@holdfast/protocol";

/** The claim that stands now; one whose time is over does not. */
export function standingClaim({ sandbox, readAt }: Holding): Claim | undefined {
  return sandbox.claim !== null && sandbox.claim.expiresAt > readAt ? sandbox.claim : undefined;
}

/** Lets only the holder through while a claim stands, and nobody with a token of one that does not. */
export function checkClaim(holding: Holding, token: string | undefined): Claim | undefined {
  const claim = standingClaim(holding);
  if (token === undefined) {
    if (claim === undefined) return undefined;
    throw held(holding, claim);
  }
  if (claim !== undefined && isTokenOf(claim, token)) return claim;
  throw lost(holding, claim);
}

export function isTokenOf({ tokenHash }: Claim, token: string): boolean {
  return timingSafeEqual(Buffer.from(tokenHash, "hex"), Buffer.from(hashOf(token), "hex"));
}

export function hashOf(token: string): string {
  return createHash("sha256").update(token).digest("hex");
}

export function held({ sandbox }: Holding, { holder, expiresAt }: Claim): HoldfastError {
  const until = new Date(expiresAt).toISOString();
  return new HoldfastError("claim_held", `sandbox ${sandbox.name} is claimed by ${holder} until ${until}`, {
    hint: "wait for its release, or take it over (takeover: true, `holdfast claim --takeover`)",
    details: { holder, expiresAt: until },
    started: "no",
  });
}

export function lost({ sandbox }: Holding, claim: Claim | undefined): HoldfastError {
  const by = claim === undefined ? "nobody holds one" : `${claim.holder} holds it now`;
  return new HoldfastError("claim_lost", `this is not the token of sandbox ${sandbox.name}'s claim: ${by}`, {
    hint: "look at what the other holder did before you claim it again",
    details: { ...(claim !== undefined && { holder: claim.holder, fence: claim.fence }) },
    started: "no",
  });
}
