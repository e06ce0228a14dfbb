import { join } from "node:path";
import type { LastEnd } from "@holdfast/protocol";
import { type EndCause, endCauses, type KeeperBoot } from "@holdfast/protocol/keeper-start";
import { integer, object, oneOf, type Shape, shape, text } from "@holdfast/protocol/plain-check";
import { readSmallJson, writeSmallJson } from "../engine/small-file.ts";

const Recorded: Shape<LastEnd> = shape(object({ cause: oneOf(endCauses), at: text, generation: integer }));

/** For the instance's log: what nobody asked for has to be explained. */
const reasons: Partial<Record<EndCause, string>> = {
  not_admitted: "no server has admitted this instance in time",
  idle_without_server: "there has been no server for too long, and nothing is going on",
  orphan_limit: "there has been no server for longer than an instance may work without one",
  max_lifetime: "the instance has reached its greatest age",
};

/** How an earlier instance of this sandbox ended, if it could still write it down. */
export function readLastEnd(boot: KeeperBoot): LastEnd | undefined {
  return readSmallJson(fileOf(boot), Recorded);
}

/** For whoever comes next, and for the log. */
export function recordEnd(boot: KeeperBoot, { cause, at }: { cause: EndCause; at: number }): void {
  const reason = reasons[cause];
  if (reason !== undefined) process.stderr.write(`holdfast keeper: ending: ${reason}\n`);
  if (cause === "not_admitted") return; // it ran nothing: the end before says more
  const told: LastEnd = { cause, at: new Date(at).toISOString(), generation: boot.generation };
  try {
    writeSmallJson(fileOf(boot), told);
  } catch (error) {
    // A full disk is no reason to stay.
    process.stderr.write(`holdfast keeper: the cause of the end could not be kept: ${String(error)}\n`);
  }
}

function fileOf({ stateDir }: KeeperBoot): string {
  return join(stateDir, "last-end.json");
}
