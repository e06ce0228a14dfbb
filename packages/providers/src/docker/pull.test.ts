import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { chmodSync, mkdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Readiness } from "@holdfast/core";
import { type ImageRegistry, missingDocker, missingRegistry, startImageRegistry } from "@holdfast/testkit";
import { DockerApi } from "./api.ts";
import { Pulls } from "./pull.ts";
import { DockerMachine } from "./test-machine.ts";

const missing = missingDocker() ?? missingRegistry();
const TIMEOUT_MS = 120_000;
const soon = () => AbortSignal.timeout(20_000);
const login = { username: "us", password: "only:with:this" };

describe.skipIf(missing !== undefined)(
  `docker: images that must be fetched${missing ? ` (${missing})` : ""}`,
  () => {
    let machine: DockerMachine;
    let open: ImageRegistry;
    let closed: ImageRegistry;
    beforeAll(async () => {
      // On our network, where the registries are.
      machine = await DockerMachine.open({ remote: { hidden: [] } });
      [open, closed] = await Promise.all([startImageRegistry(), startImageRegistry(login)]);
      await open.push(machine.daemon, machine.daemon.images.busybox, "tools:1");
      await closed.push(machine.daemon, machine.daemon.images.busybox, "private:1");
      // With its only name go its layers: what is there already is not fetched.
      await forget(machine.daemon.images.busybox);
    }, TIMEOUT_MS);
    afterAll(async () => {
      await open?.stop();
      await closed?.stop();
      await machine?.close();
    }, TIMEOUT_MS);

    const prepare = (image: string) => machine.provider.prepare?.({ image }, soon()) ?? Promise.reject();
    const forget = (image: string) => machine.daemon.ask("DELETE", `/images/${image}`);

    test(
      "an image that is not there is fetched once for all who wait, says how far it is, and runs",
      async () => {
        const image = `${open.host}/tools:1`;
        open.hold();
        const looks = await Promise.all([prepare(image), prepare(image)]);
        const fetching: Readiness = {
          state: "fetching",
          detail: { image, layers: 1, layersDone: 0, receivedBytes: 0, totalBytes: 0 },
        };
        // The daemon says which layers there are once it has asked for them.
        const later = await until(
          () => prepare(image),
          ({ detail }) => detail?.layers === 1,
        );
        expect([looks.map(({ state }) => state), later]).toEqual([["fetching", "fetching"], fetching]);
        open.letGo();
        await until(
          () => prepare(image),
          ({ state }) => state === "ready",
        );
        expect(open.requests.filter((one) => one === "HEAD /v2/tools/manifests/1").length).toBe(1);
        const ref = await machine.launch({ image, network: "none" });
        expect(await machine.exec(ref, "echo from far away")).toMatchObject({ stdout: "from far away\n" });
        await machine.clear();
        await forget(image);
      },
      TIMEOUT_MS,
    );

    test(
      "a login is used: as docker's own file has it, and as its helpers tell it",
      async () => {
        const image = `${closed.host}/private:1`;
        const { username, password } = login;
        const bin = join(machine.dataDir, "bin");
        mkdirSync(bin);
        mkdirSync(machine.configDir);
        // It knows one registry, and is asked for it by name.
        const answer = JSON.stringify({ Username: username, Secret: password });
        const helper = `#!/bin/sh\n[ "$1 $(cat)" = "get ${closed.host}" ] && echo '${answer}'\n`;
        writeFileSync(join(bin, "docker-credential-test"), helper);
        chmodSync(join(bin, "docker-credential-test"), 0o755);
        const path = process.env.PATH;
        process.env.PATH = `${bin}:${path}`;
        const auth = Buffer.from(`${username}:${password}`).toString("base64");
        try {
          for (const config of [
            { auths: { [`https://${closed.host}/v2/`]: { auth } } },
            { credsStore: "none-such", credHelpers: { [closed.host]: "test" } },
            { credsStore: "test" },
          ]) {
            writeFileSync(join(machine.configDir, "config.json"), JSON.stringify(config));
            await until(
              () => prepare(image),
              ({ state }) => state === "ready",
            );
            await forget(image);
          }
        } finally {
          process.env.PATH = path;
          rmSync(machine.configDir, { recursive: true });
        }
      },
      TIMEOUT_MS,
    );

    test(
      "what cannot be fetched says why, and what to do",
      async () => {
        const cases = {
          [`${open.host}/tools:none`]: /its registry has no such version/,
          [`${open.host}/nothing:1`]: /its registry has no such version|does not exist/,
          [`${closed.host}/private:1`]: /`docker login 127\.0\.0\.1:\d+` is needed first/,
          "127.0.0.1:1/tools:1": /the daemon cannot reach its registry/,
        };
        for (const [image, message] of Object.entries(cases)) {
          const failure = until(
            () => prepare(image),
            ({ state }) => state === "ready",
          );
          await expect(failure).rejects.toMatchObject({
            code: "launch_failed",
            message: expect.stringMatching(message),
          });
        }
        open.hold();
        const { host } = machine.daemon;
        const impatient = new Pulls({
          api: new DockerApi(host),
          configDir: machine.configDir,
          stalledMs: 300,
        });
        const image = `${open.host}/tools:1`;
        const failure = until(
          () => impatient.prepare(image, soon()),
          ({ state }) => state === "ready",
        );
        await expect(failure).rejects.toMatchObject({
          code: "launch_failed",
          message: expect.stringContaining("has said nothing"),
        });
        open.letGo();
      },
      TIMEOUT_MS,
    );

    test(
      "a daemon that goes away in the middle is said to have, and not that the image cannot be had",
      async () => {
        const image = `${open.host}/tools:1`;
        open.hold();
        expect(await prepare(image)).toMatchObject({ state: "fetching" });
        await machine.daemon.stop();
        const codes = ["unavailable", "provider_unavailable"];
        const failure = await until(
          () => prepare(image),
          ({ state }) => state === "ready",
        ).catch((error) => error);
        expect(codes).toContain(failure.code);
      },
      TIMEOUT_MS,
    );
  },
);

const missingPodman = missingDocker("podman") ?? missingRegistry();
(missingPodman === undefined ? test : test.skip)(
  `podman fetches what it has not, with a login, and says why it cannot ${missingPodman ?? ""}`,
  async () => {
    const registry = await startImageRegistry(login);
    const machine = await DockerMachine.open({ engine: "podman", network: "ours" });
    // By a server of its own each time: who asked before hears of a failure for a while.
    const ready = (tag: string) => {
      const image = `${registry.host}/private:${tag}`;
      const { prepare } = machine.open();
      const isReady = ({ state }: { state: string }) => state === "ready";
      return until(async () => prepare?.({ image }, soon()) ?? Promise.reject(), isReady);
    };
    try {
      await registry.push(machine.daemon, machine.daemon.images.busybox, "private:1");
      await machine.daemon.ask("DELETE", `/images/${machine.daemon.images.busybox}`);
      await expect(ready("1")).rejects.toMatchObject({
        code: "launch_failed",
        message: expect.stringMatching(/`docker login 127\.0\.0\.1:\d+` is needed first/),
      });
      const auth = Buffer.from(`${login.username}:${login.password}`).toString("base64");
      mkdirSync(machine.configDir);
      const config = { auths: { [registry.host]: { auth } } };
      writeFileSync(join(machine.configDir, "config.json"), JSON.stringify(config));
      await expect(ready("none")).rejects.toMatchObject({
        message: expect.stringContaining("its registry has no such version"),
      });
      await ready("1");
      const ref = await machine.launch({ image: `${registry.host}/private:1`, network: "none" });
      expect(await machine.exec(ref, "echo from far away")).toMatchObject({ stdout: "from far away\n" });
    } finally {
      await machine.close();
      await registry.stop();
    }
  },
  TIMEOUT_MS,
);

/** Asks until it is so: the daemon works on, whoever asks. */
async function until(
  look: () => Promise<Readiness>,
  isSo: (seen: { state: string; detail?: Readonly<Record<string, unknown>> }) => boolean,
): Promise<Readiness> {
  for (;;) {
    const seen = await look();
    if (isSo(seen)) return seen;
  }
}
