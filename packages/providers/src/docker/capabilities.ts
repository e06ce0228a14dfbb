import { type Capabilities, plainCapabilities } from "@holdfast/core";
import { type AllowedMount, printAllowed } from "../mounts.ts";
import type { Info } from "./engine-types.ts";
import { canLimit, canLimitDisk } from "./limits.ts";
import { networkDetail } from "./network.ts";
import { canPause } from "./pause.ts";
import { runtimesOf } from "./runtimes.ts";

/**
 * A daemon that is asked by exact name sees every container that it has made. It may be just making one for a server
 * that has died: that takes as long as the image's own files in `/workspace` need to be copied into the new volume.
 */
const SETTLE_MS = 10_000;

/** What the daemon can, by its own account; before it was asked, nothing that depends on it. */
export function capabilitiesOf(info: Info | undefined, allowedMounts: readonly AllowedMount[]): Capabilities {
  const common = {
    ...plainCapabilities,
    ...{ images: true, users: true, readOnly: true, tmpfs: true, settleMs: SETTLE_MS },
    mounts: allowedMounts.map(printAllowed),
  };
  const unknown = { enforced: false, detail: "not probed yet" };
  if (info === undefined) return { ...common, limits: { ...unknown, disk: unknown } };
  return {
    ...common,
    networkDetail: networkDetail(info),
    pauseDetail: canPause(info).detail,
    limits: { ...canLimit(info), disk: canLimitDisk(info) },
    runtimes: runtimesOf(info),
  };
}
