import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { randomUUID } from "node:crypto";
import type { Found, InstanceRef, LaunchPlan, Observation, Provider } from "@holdfast/core";
import type { HoldfastError } from "@holdfast/protocol";

/** What the suite needs of a backend. */
export interface ProviderFixture {
  /** A new object on the same backend each time: what a restarted server has. */
  open(): Provider;
  /** How every instance of the suite is launched. */
  readonly plan: LaunchPlan;
  /** Starts an instance of this name of which nothing but the name can be read; returns what it is found as. */
  launchLegacy(instance: InstanceRef): Promise<InstanceRef>;
  /** Ends an instance behind the provider's back, as a crash or a killer of processes would. */
  crash(instance: InstanceRef): Promise<void>;
  /** What is on the machine that was not there before: processes, directories, groups, in any words. */
  leftovers(): Promise<readonly string[]>;
  close(): Promise<void>;
}

/** The promises of `Provider`, against a real backend. Each test leaves nothing behind. */
export function providerConformance(
  name: string,
  options: {
    setUp: () => Promise<ProviderFixture>;
    timeoutMs: number;
    /** Those whose names have one of these words; without it, all. */
    only?: readonly string[];
  },
): void {
  describe(`provider conformance: ${name}`, () => {
    const suite = new Suite(options.setUp);
    beforeAll(() => suite.open(), options.timeoutMs);
    afterAll(() => suite.close(), options.timeoutMs);
    const isWanted = (promise: string) => options.only?.some((words) => promise.includes(words)) ?? true;
    for (const [promise, check] of Object.entries(promises).filter(([name]) => isWanted(name))) {
      test(promise, () => check(suite), options.timeoutMs);
    }
    test(
      "nothing was left behind",
      async () => expect(await suite.fixture.leftovers()).toEqual([]),
      options.timeoutMs,
    );
  });
}

class Suite {
  readonly #setUp: () => Promise<ProviderFixture>;
  #fixture: ProviderFixture | undefined;

  constructor(setUp: () => Promise<ProviderFixture>) {
    this.#setUp = setUp;
  }

  async open(): Promise<void> {
    this.#fixture = await this.#setUp();
  }

  async close(): Promise<void> {
    await this.#fixture?.close();
    this.#fixture = undefined;
  }

  get fixture(): ProviderFixture {
    if (this.#fixture === undefined) throw new Error("the suite is not open");
    return this.#fixture;
  }

  /** As `discover` is to show it. */
  instanceOf(ref: InstanceRef): Found {
    const { lifetimeSeconds, fence } = this.fixture.plan;
    return { kind: "instance", ref, createdAt: expect.any(Number), lifetimeSeconds, fence, legacy: false };
  }

  /** Launches an instance, and removes it with its disk whatever happens. */
  async withInstance(work: (ref: InstanceRef, provider: Provider) => Promise<void>): Promise<void> {
    const ref = newRef();
    const provider = this.fixture.open();
    try {
      await provider.launch(ref, this.fixture.plan, soon());
      await work(ref, provider);
    } finally {
      await provider.stop(ref, "force", soon());
      await provider.removeDisk(ref, soon());
    }
  }
}

const promises: Record<string, (suite: Suite) => Promise<void>> = {
  "everything that is required of the machine is there": async ({ fixture }) => {
    const checks = await fixture.open().probe();
    expect(checks.filter(({ ok, required }) => required && !ok)).toEqual([]);
  },

  "what was never launched is absent, and may be stopped and removed": async ({ fixture }) => {
    const provider = fixture.open();
    const ref = newRef();
    const answers = [
      await provider.observe(ref, soon()),
      await provider.stop(ref, "graceful", soon()),
      await provider.stop(ref, "force", soon()),
      await provider.removeDisk(ref, soon()),
    ];
    expect(answers.map(({ state }) => state)).toEqual(["absent", "absent", "absent", "absent"]);
    expect(await foundOf(ref, provider)).toEqual([]);
  },

  "a launched instance runs, answers, and is discovered with its disk": (suite) =>
    suite.withInstance(async (ref, provider) => {
      const observed = await provider.observe(ref, soon());
      expect(observed).toMatchObject({ state: "running", detail: expect.any(String) });
      expect(await answers(observed)).toBe(true);
      expect(await foundOf(ref, provider)).toEqual([diskOf(ref), suite.instanceOf(ref)]);
    }),

  "what is found carries when it was made, how long it may live, and its fence": (suite) =>
    suite.withInstance(async (ref, provider) => {
      const before = await foundOf(ref, provider);
      expect(before).toEqual([diskOf(ref), suite.instanceOf(ref)]);
      for (const { createdAt } of before) expect(createdAt).toBeGreaterThan(0);
      await provider.launch(ref, suite.fixture.plan, soon());
      expect(await foundOf(ref, suite.fixture.open())).toEqual(before);
    }),

  "what there is to be shared out can be measured": (suite) =>
    suite.withInstance(async (_, provider) => {
      const { slots, memoryBytes, disk } = await provider.capacity(soon());
      for (const limit of [slots, memoryBytes]) if (limit !== null) expect(limit).toBeGreaterThan(0);
      expect(disk.sizeBytes).toBeGreaterThan(0);
      expect(disk.freeBytes).toBeWithin(0, disk.sizeBytes + 1);
      expect(disk.freeInodes).toBeWithin(0, disk.inodes + 1);
    }),

  "an end is proved: nothing is called absent because it was not found": (suite) =>
    suite.withInstance(async (ref, provider) => {
      await suite.fixture.crash(ref);
      const looks = [await provider.observe(ref, soon()), await provider.stop(ref, "graceful", soon())];
      expect(looks).toMatchObject(looks.map(() => ({ state: "absent", proof: "exited" })));
    }),

  "what others do to it is told, where the backend tells of changes": (suite) =>
    suite.withInstance(async (ref, provider) => {
      if (provider.watch === undefined) return;
      const over = new AbortController();
      const told = Promise.withResolvers<void>();
      const onChange = (sandboxId: string | undefined) => sandboxId === ref.sandboxId && told.resolve();
      const watching = provider.watch(onChange, over.signal).catch(() => undefined);
      await suite.fixture.crash(ref);
      await told.promise;
      over.abort();
      await watching;
    }),

  "a second launch accepts the first": (suite) =>
    suite.withInstance(async (ref, provider) => {
      const before = await provider.observe(ref, soon());
      await provider.launch(ref, suite.fixture.plan, soon());
      expect(await provider.observe(ref, soon())).toEqual(before);
    }),

  "launches at the same time, by one server or by two, make one instance": async (suite) => {
    // Several rounds, because what can go wrong here depends on who comes first.
    for (let round = 0; round < 5; round++) {
      const ref = newRef();
      const [provider, other] = [suite.fixture.open(), suite.fixture.open()];
      const servers = [provider, other, provider, other];
      try {
        await Promise.all(servers.map((server) => server.launch(ref, suite.fixture.plan, soon())));
        expect(await foundOf(ref, provider)).toEqual([diskOf(ref), suite.instanceOf(ref)]);
        expect(await answers(await provider.observe(ref, soon()))).toBe(true);
      } finally {
        await provider.stop(ref, "force", soon());
        await provider.removeDisk(ref, soon());
      }
    }
  },

  "many sandboxes can be launched at the same time": async (suite) => {
    const provider = suite.fixture.open();
    const installationId = randomUUID();
    const refs = Array.from({ length: 8 }, () => ({ ...newRef(), installationId }));
    try {
      await Promise.all(refs.map((ref) => provider.launch(ref, suite.fixture.plan, soon())));
      const seen = await Promise.all(refs.map((ref) => provider.observe(ref, soon())));
      expect(await Promise.all(seen.map(answers))).toEqual(refs.map(() => true));
      const found = await provider.discover(soon());
      const ours = found.filter(({ ref }) => ref.installationId === installationId);
      expect(ours.length).toBe(2 * refs.length);
    } finally {
      await Promise.all(refs.map((ref) => provider.stop(ref, "force", soon())));
      await Promise.all(refs.map((ref) => provider.removeDisk(ref, soon())));
    }
  },

  "a restarted server finds, accepts and ends what the old one launched": (suite) =>
    suite.withInstance(async (ref, before) => {
      const after = suite.fixture.open();
      expect(await after.observe(ref, soon())).toEqual(await before.observe(ref, soon()));
      expect(await foundOf(ref, after)).toEqual([diskOf(ref), suite.instanceOf(ref)]);
      await after.launch(ref, suite.fixture.plan, soon());
      expect((await after.stop(ref, "graceful", soon())).state).toBe("absent");
      expect((await before.observe(ref, soon())).state).toBe("absent");
    }),

  "stop ends it, may be repeated, and keeps the disk": (suite) =>
    suite.withInstance(async (ref, provider) => {
      const running = await provider.observe(ref, soon());
      for (const mode of ["graceful", "force", "graceful"] as const) {
        expect((await provider.stop(ref, mode, soon())).state).toBe("absent");
      }
      expect((await provider.observe(ref, soon())).state).toBe("absent");
      expect(await answers(running)).toBe(false);
      expect(await foundOf(ref, provider)).toEqual([diskOf(ref)]);
    }),

  "stops at the same time all say absent": (suite) =>
    suite.withInstance(async (ref, provider) => {
      const modes = ["graceful", "force", "graceful", "force"] as const;
      const seen = await Promise.all(modes.map((mode) => provider.stop(ref, mode, soon())));
      expect(seen.map(({ state }) => state)).toEqual(["absent", "absent", "absent", "absent"]);
    }),

  "the next generation runs on the same disk": (suite) =>
    suite.withInstance(async (ref, provider) => {
      await provider.stop(ref, "graceful", soon());
      const next = { ...ref, instanceId: randomUUID(), generation: ref.generation + 1 };
      try {
        await provider.launch(next, suite.fixture.plan, soon());
        expect((await provider.observe(ref, soon())).state).toBe("absent");
        expect(await foundOf(ref, provider)).toEqual([diskOf(ref), suite.instanceOf(next)]);
      } finally {
        await provider.stop(next, "force", soon());
      }
    }),

  "a crashed instance is absent, is not started again under its name, and leaves nothing after stop": (
    suite,
  ) =>
    suite.withInstance(async (ref, provider) => {
      await suite.fixture.crash(ref);
      expect((await provider.observe(ref, soon())).state).toBe("absent");
      expect(await codeOf(provider.launch(ref, suite.fixture.plan, soon()))).toBe("launch_failed");
      expect((await provider.stop(ref, "graceful", soon())).state).toBe("absent");
      expect(await foundOf(ref, provider)).toEqual([diskOf(ref)]);
    }),

  "the disk of a running instance is not removed": (suite) =>
    suite.withInstance(async (ref, provider) => {
      expect(await codeOf(provider.removeDisk(ref, soon()))).toBe("wrong_state");
      expect(await answers(await provider.observe(ref, soon()))).toBe(true);
      await provider.stop(ref, "graceful", soon());
      expect((await provider.removeDisk(ref, soon())).state).toBe("absent");
      expect((await provider.removeDisk(ref, soon())).state).toBe("absent");
      expect(await foundOf(ref, provider)).toEqual([]);
    }),

  "scenario 7: another installation's instance of the same name is neither adopted nor killed": (suite) =>
    suite.withInstance(async (ref, provider) => {
      const foreign = { ...ref, installationId: randomUUID(), instanceId: randomUUID() };
      expect(await codeOf(provider.launch(foreign, suite.fixture.plan, soon()))).toBe("already_exists");
      expect((await provider.observe(foreign, soon())).state).toBe("absent");
      expect((await provider.stop(foreign, "force", soon())).state).toBe("absent");
      expect((await provider.removeDisk(foreign, soon())).state).toBe("absent");
      expect(await answers(await provider.observe(ref, soon()))).toBe(true);
    }),

  "scenario 39: another installation's things are seen with its id, and the ends of ours leave them alone": (
    suite,
  ) =>
    suite.withInstance((theirs, provider) =>
      suite.withInstance(async (ours) => {
        const before = await foundOf(theirs, provider);
        expect(before).toEqual([diskOf(theirs), suite.instanceOf(theirs)]);
        await provider.stop(ours, "force", soon());
        await provider.removeDisk(ours, soon());
        expect(await foundOf(theirs, provider)).toEqual(before);
        expect(await answers(await provider.observe(theirs, soon()))).toBe(true);
      }),
    ),

  "scenario 40: one with nothing but its name is seen, blocks the launch, is stopped, and never used again":
    async ({ fixture }) => {
      const provider = fixture.open();
      const ref = newRef();
      const legacy = await fixture.launchLegacy(ref);
      const isIt = (found: Found) => found.kind === "instance" && found.ref.instanceId === legacy.instanceId;
      try {
        expect(legacy).toMatchObject({ sandboxId: ref.sandboxId, generation: ref.generation });
        expect((await provider.discover(soon())).filter(isIt)).toMatchObject([{ ref: legacy, legacy: true }]);
        expect(await codeOf(provider.launch(ref, fixture.plan, soon()))).toBe("already_exists");
        expect(["already_exists", "invalid_argument"]).toContain(
          await codeOf(provider.launch(legacy, fixture.plan, soon())),
        );
        expect(await answers(await provider.observe(legacy, soon()))).toBe(true);
      } finally {
        expect((await provider.stop(legacy, "graceful", soon())).state).toBe("absent");
        await provider.removeDisk(legacy, soon());
      }
      expect((await provider.discover(soon())).filter(isIt)).toEqual([]);
    },

  "another instance of the same generation is neither adopted nor touched": (suite) =>
    suite.withInstance(async (ref, provider) => {
      const rival = { ...ref, instanceId: randomUUID() };
      expect(await codeOf(provider.launch(rival, suite.fixture.plan, soon()))).toBe("already_exists");
      expect((await provider.stop(rival, "force", soon())).state).toBe("absent");
      expect(await answers(await provider.observe(ref, soon()))).toBe(true);
    }),

  "a launch that is given up can be stopped at once": async ({ fixture }) => {
    const provider = fixture.open();
    for (const afterMs of [0, 5, 15, 30, 60]) {
      const ref = newRef();
      const launch = provider.launch(ref, fixture.plan, AbortSignal.timeout(afterMs)).catch(() => undefined);
      await launch;
      expect((await provider.stop(ref, "force", soon())).state).toBe("absent");
      expect((await provider.observe(ref, soon())).state).toBe("absent");
      expect((await provider.removeDisk(ref, soon())).state).toBe("absent");
      expect(await foundOf(ref, provider)).toEqual([]);
    }
  },

  "a stop in the middle of a launch wins": async ({ fixture }) => {
    const provider = fixture.open();
    const ref = newRef();
    const launch = provider.launch(ref, fixture.plan, soon()).catch(() => undefined);
    expect((await provider.stop(ref, "force", soon())).state).toBe("absent");
    await launch;
    expect((await provider.stop(ref, "force", soon())).state).toBe("absent");
    expect((await provider.removeDisk(ref, soon())).state).toBe("absent");
  },

  "what is frozen lives, answers nobody until it is resumed, is known to a restarted server, and can be stopped":
    (suite) =>
      suite.withInstance(async (ref, provider) => {
        const { pause, resume } = pausingOf(provider);
        if (pause === undefined || resume === undefined) return;
        const frozen = { state: "running", isPaused: true };
        const rivals = [
          { ...ref, instanceId: randomUUID() },
          { ...ref, installationId: randomUUID() },
        ];
        for (const rival of rivals) expect((await pause(rival, soon())).state).toBe("absent");
        expect(await answers(await provider.observe(ref, soon()))).toBe(true);
        expect(await pause(ref, soon())).toMatchObject(frozen);
        for (const rival of rivals) expect((await resume(rival, soon())).state).toBe("absent");
        expect(await pause(ref, soon())).toMatchObject(frozen);
        let isAnswered = false;
        const answer = answers(await provider.observe(ref, soon())).then((was) => {
          isAnswered = true;
          return was;
        });
        expect(await suite.fixture.open().observe(ref, soon())).toMatchObject(frozen);
        expect(await foundOf(ref, provider)).toEqual([diskOf(ref), suite.instanceOf(ref)]);
        // Long enough for one that is not frozen.
        await Bun.sleep(50);
        expect(isAnswered).toBe(false);
        for (let i = 0; i < 2; i++) {
          const seen = await resume(ref, soon());
          expect([seen.state, "isPaused" in seen]).toEqual(["running", false]);
        }
        expect(await answer).toBe(true);
        await pause(ref, soon());
        expect((await provider.stop(ref, "graceful", soon())).state).toBe("absent");
        for (const turn of [pause, resume]) expect((await turn(ref, soon())).state).toBe("absent");
        expect(await foundOf(ref, provider)).toEqual([diskOf(ref)]);
      }),

  "an id that would lead out of its place is refused": async ({ fixture }) => {
    const provider = fixture.open();
    for (const sandboxId of ["../x", "a/b", "", ".", "-rf", "a\0b"]) {
      const ref = { ...newRef(), sandboxId };
      expect(await codeOf(provider.launch(ref, fixture.plan, soon()))).toBe("invalid_argument");
      expect(await codeOf(provider.removeDisk(ref, soon()))).toBe("invalid_argument");
    }
  },
};

/** Both, or neither; and why. */
function pausingOf(provider: Provider): Pick<Provider, "pause" | "resume"> {
  const pause = provider.pause?.bind(provider);
  const resume = provider.resume?.bind(provider);
  expect([pause === undefined, provider.capabilities.pauseDetail]).toEqual([
    resume === undefined,
    expect.stringMatching(/./),
  ]);
  return { pause, resume };
}

function newRef(): InstanceRef {
  return {
    installationId: randomUUID(),
    sandboxId: `sbx-${randomUUID().slice(0, 8)}`,
    instanceId: randomUUID(),
    generation: 1,
  };
}

function soon(): AbortSignal {
  return AbortSignal.timeout(20_000);
}

/** Everything of one installation; of ours, each test has its own. */
async function foundOf({ installationId }: InstanceRef, provider: Provider): Promise<Found[]> {
  const found = (await provider.discover(soon())).filter(({ ref }) => ref.installationId === installationId);
  return found.sort((a, b) => a.kind.localeCompare(b.kind));
}

function diskOf({ installationId, sandboxId }: InstanceRef): Found {
  return { kind: "disk", ref: { installationId, sandboxId }, createdAt: expect.any(Number) };
}

/** Whether somebody answers at the keeper's address, whatever the answer. */
async function answers(observed: Observation): Promise<boolean> {
  if (observed.state !== "running") return false;
  try {
    await fetch("http://keeper/", { unix: observed.keeper.path, signal: soon() });
    return true;
  } catch {
    return false;
  }
}

async function codeOf(call: Promise<unknown>): Promise<string> {
  try {
    await call;
    return "no error";
  } catch (error) {
    return (error as HoldfastError).code;
  }
}
