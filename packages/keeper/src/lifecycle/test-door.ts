import { AdmitRequest, type KeeperBoot } from "@holdfast/protocol";
import { Admission } from "../admission.ts";
import type { UseClock } from "../engine/use-clock.ts";
import { Claims } from "./claims.ts";
import { Door } from "./door.ts";
import { Gate } from "./gate.ts";

/** What `guarded` needs, for tests of routes: admitted, unclaimed, and nobody counts contact. */
export function testGuard(host: { boot: KeeperBoot; use: UseClock }) {
  const { boot, use } = host;
  const { instanceId, generation, secret } = boot;
  const admission = new Admission(boot);
  admission.admit(AdmitRequest.parse({ instanceId, generation, fence: 1 }));
  const gate = new Gate({ elapsed: () => performance.now(), use });
  const door = new Door({ deadman: { heard() {} }, claims: new Claims(boot.stateDir), gate });
  return { secret, admission, door };
}
