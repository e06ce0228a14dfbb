import { describe, expect, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createDockerProvider } from "../index.ts";
import { chooseVersion } from "./api.ts";
import { refused, unreachable } from "./errors.ts";

const soon = () => AbortSignal.timeout(5_000);

describe("the version that both sides speak", () => {
  for (const [newest, oldest, chosen] of [
    ["1.41", "1.12", "1.41"],
    ["1.44", "1.24", "1.44"],
    ["1.52", "1.44", "1.44"],
    ["1.40", "1.12", "provider_unavailable"],
    ["1.60", "1.50", "provider_unavailable"],
    ["2.0", "1.44", "1.44"],
  ] as const) {
    test(`${oldest} to ${newest}: ${chosen}`, () => {
      const choose = () => chooseVersion({ newest, oldest });
      if (chosen.startsWith("1.")) expect(choose()).toBe(chosen);
      else expect(choose).toThrow(expect.objectContaining({ code: chosen }));
    });
  }
});

test("without a daemon every call says so, and the probe says what to type", async () => {
  const dataDir = mkdtempSync(join(tmpdir(), "holdfast-dk-"));
  const provider = createDockerProvider({
    dataDir,
    keeperBundle: dataDir,
    host: `unix://${dataDir}/none.sock`,
  });
  const ref = { installationId: "i", sandboxId: "s", instanceId: "x", generation: 1 };
  const plan = { spec: {}, hostname: "box", secret: "x".repeat(32), lifetimeSeconds: 60, fence: 1 };
  const calls = [
    provider.launch(ref, plan, soon()),
    provider.observe(ref, soon()),
    provider.stop(ref, "force", soon()),
    provider.removeDisk(ref, soon()),
    provider.discover(soon()),
    provider.capacity(soon()),
  ];
  const codes = (await Promise.allSettled(calls)).map((one) => one.status === "rejected" && one.reason.code);
  expect(codes).toEqual(calls.map(() => "provider_unavailable"));
  expect((await provider.probe())[0]).toMatchObject({
    ...{ name: "docker", ok: false, required: true },
    remedy: expect.stringContaining("systemctl start docker"),
  });
  rmSync(dataDir, { recursive: true });
});

describe("what went wrong on the way to the daemon", () => {
  for (const [code, says] of [
    ["EACCES", { code: "provider_unavailable", hint: expect.stringContaining("usermod -aG docker") }],
    ["ECONNREFUSED", { code: "provider_unavailable", hint: expect.stringContaining("DOCKER_HOST") }],
    ["ENOTFOUND", { code: "provider_unavailable", hint: expect.stringContaining("DOCKER_HOST") }],
    [
      "DEPTH_ZERO_SELF_SIGNED_CERT",
      { code: "provider_unavailable", hint: expect.stringContaining("ca.pem") },
    ],
    ["ECONNRESET", { code: "unavailable", started: "unknown" }],
  ] as const) {
    test(code, () => {
      const cause = Object.assign(new TypeError("fetch failed"), { code });
      expect(unreachable("/run/docker.sock", cause)).toMatchObject(says);
    });
  }
});

test("what the daemon says of its file system is kept as what it is", () => {
  const call = { method: "POST", path: "/containers/create" } as const;
  const bytes = new TextEncoder().encode('{"message":"mkdir /x: no space left on device"}');
  expect(refused(call, { status: 500, bytes })).toMatchObject({
    code: "unavailable",
    message: "Docker says: mkdir /x: no space left on device",
    details: { status: 500, errno: "ENOSPC" },
  });
});
