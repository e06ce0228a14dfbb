import { expect, test } from "bun:test";
import { type Capabilities, type Provider, plainCapabilities } from "@holdfast/core";
import type { SandboxSpec } from "@holdfast/protocol";
import { checkSupported } from "./supported.ts";

const able: Partial<Capabilities> = {
  ...{ images: true, users: true, readOnly: true, tmpfs: true, runtimes: ["runc", "runsc"] },
  mounts: ["/srv/data:ro", "/srv/shared"],
  limits: { enforced: true, detail: "groups", disk: { enforced: true, detail: "quotas" } },
};

const mount = (source: string) => ({ mounts: [{ source, target: "/data" }] });

/** What is asked for, what the provider can, and the refusal, if any. */
const cases: readonly (readonly [SandboxSpec, Partial<Capabilities>, RegExp | undefined])[] = [
  [{}, {}, undefined],
  [{ image: "debian" }, {}, /has no images/],
  [{ network: "full" }, { networks: ["none"] }, /cannot give network "full"/],
  [{ user: "root" }, {}, /cannot run as root/],
  [{ user: "root" }, able, undefined],
  [{ readOnly: true }, {}, /read-only/],
  [{ readOnly: false }, {}, undefined],
  [{ tmpfs: { "/cache": 64 } }, {}, /no places in memory/],
  [{ runtime: "kata" }, able, /has no runtime kata/],
  [{ runtime: "runsc" }, able, undefined],
  [mount("/srv/data"), {}, /does not let sandboxes on some see \/srv\/data/],
  [mount("/srv/data/set"), able, undefined],
  [mount("/srv/database"), able, /see \/srv\/database/],
  [mount("/srv"), able, /see \/srv/],
  [{ limits: { pids: 64, required: true } }, {}, /limits cannot be enforced/],
  [{ limits: { diskMiB: 64 } }, {}, undefined],
  [
    { limits: { diskMiB: 64, required: true } },
    { limits: { enforced: true, detail: "", disk: { enforced: false, detail: "no quotas" } } },
    /the disk cannot be limited here: no quotas/,
  ],
];

test("what a provider cannot give is refused when it is asked for, with a way out", () => {
  for (const [spec, capabilities, refusal] of cases) {
    const provider = { kind: "some", capabilities: { ...plainCapabilities, ...capabilities } } as Provider;
    const check = () => checkSupported(provider, spec);
    if (refusal === undefined) check();
    else
      expect(check).toThrow(
        expect.objectContaining({
          code: "unsupported",
          message: expect.stringMatching(refusal),
          hint: expect.any(String),
        }),
      );
  }
});
