import { afterAll, beforeAll, expect, test } from "bun:test";
import { existsSync, mkdirSync, utimesSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { Machine } from "../../fixtures/machine.ts";
import { deleteDisk, ensureDisk, listDisks } from "./disk.ts";
import { claimUid, freeUid } from "./host-user.ts";
import { layoutOf, makeLayout } from "./layout.ts";

let machine: Machine;
beforeAll(async () => {
  machine = await Machine.open();
});
afterAll(() => machine.close());

const soon = () => AbortSignal.timeout(20_000);
const asRoot = process.getuid?.() === 0;

test("files live on in the next generation; what was temporary does not", async () => {
  const first = await machine.launch({ network: "none" });
  await machine.run(
    first,
    "sh",
    "-c",
    "echo kept | tee /workspace/f /home/user/f /tmp/f /var/tmp/f /dev/shm/f",
  );
  await machine.provider.stop(first, "graceful", soon());
  const next = await machine.launch({ network: "none" }, { ...first, instanceId: "i2", generation: 2 });
  const ran = await machine.run(
    next,
    "sh",
    "-c",
    "ls /workspace/f /home/user/f /tmp/f /var/tmp/f /dev/shm/f 2> /dev/null",
  );
  expect(ran.stdout).toBe("/home/user/f\n/workspace/f\n");
  await machine.clear();
});

test("work that locks itself out of its own directories is let in again by the next start", async () => {
  const first = await machine.launch({ network: "none" });
  const lock = "chmod 000 /home/user /.holdfast/state; chmod 055 /workspace";
  expect(await machine.run(first, "sh", "-c", lock)).toMatchObject({ exitCode: 0, stderr: "" });
  await machine.provider.stop(first, "graceful", soon());
  const next = await machine.launch({ network: "none" }, { ...first, instanceId: "i2", generation: 2 });
  const modes = await machine.run(next, "stat", "-c", "%a", "/home/user", "/.holdfast/state", "/workspace");
  expect(modes.stdout).toBe("700\n700\n755\n");
  await machine.clear();
});

/** Deeper than a path can be long, without permissions, with links out and names that look like options. */
const HOSTILE = `
  for dir in /workspace /home/user /tmp /.holdfast/state; do
    cd $dir || exit 1
    ln -s "$1" link; ln -s / root; mkfifo pipe; mkdir -p -- -rf 'a
b'
    perl -e 'for (1 .. 200) { mkdir "d" x 200; chdir "d" x 200 or die } open F, ">", "deep"'
    mkdir -p locked/inner; touch locked/inner/file; chmod 000 locked/inner locked
    mkdir last; chmod 000 last
  done`;

test("a hostile tree is removed, and nothing that it points at", async () => {
  const precious = join(machine.dir, "precious");
  mkdirSync(precious);
  writeFileSync(join(precious, "file"), "still here");
  const ref = await machine.launch({ network: "none" });
  expect(await machine.run(ref, "bash", "-c", HOSTILE, "bash", precious)).toMatchObject({
    exitCode: 0,
    stderr: "",
  });
  expect((await machine.provider.stop(ref, "force", soon())).state).toBe("absent");
  expect((await machine.provider.removeDisk(ref, soon())).state).toBe("absent");
  expect(existsSync(join(precious, "file"))).toBe(true);
  expect(machine.leftovers()).toEqual([]);
});

test("a disk that was being made or removed when the server died is finished", async () => {
  const layout = layoutOf(join(machine.dir, "interrupted"));
  makeLayout(layout);
  const ref = { installationId: "a", sandboxId: "s" };
  mkdirSync(join(layout.sandboxes, ".new-s/workspace"), { recursive: true });
  expect(await listDisks(layout)).toEqual([]);
  const disk = await ensureDisk(layout, ref, { now: 1000 });
  expect(await ensureDisk(layout, ref, { now: 2000 })).toEqual(disk);
  expect(await listDisks(layout)).toEqual([{ kind: "disk", ref, createdAt: 1000 }]);
  expect(existsSync(join(layout.sandboxes, ".new-s"))).toBe(false);
  await expect(ensureDisk(layout, { ...ref, installationId: "b" }, { now: 1000 })).rejects.toMatchObject({
    code: "already_exists",
  });
  mkdirSync(join(layout.sandboxes, ".new-s/state"), { recursive: true });
  expect((await deleteDisk(layout, ref)).state).toBe("absent");
  expect(existsSync(join(layout.sandboxes, ".new-s"))).toBe(false);
  expect(await listDisks(layout)).toEqual([]);
});

test("a disk whose owner cannot be read is nobody's: it is listed, and not removed", async () => {
  const layout = layoutOf(join(machine.dir, "unreadable"));
  makeLayout(layout);
  const records = { missing: undefined, garbled: "{", empty: "{}" };
  for (const [sandboxId, record] of Object.entries(records)) {
    mkdirSync(join(layout.sandboxes, sandboxId));
    if (record !== undefined) writeFileSync(join(layout.sandboxes, sandboxId, "disk.json"), record);
    const ref = { installationId: "a", sandboxId };
    for (const call of [() => ensureDisk(layout, ref, { now: 1000 }), () => deleteDisk(layout, ref)]) {
      await expect(call()).rejects.toMatchObject({ code: "internal" });
    }
  }
  mkdirSync(join(layout.sandboxes, "not one of ours"));
  expect((await listDisks(layout)).sort((a, b) => a.ref.sandboxId.localeCompare(b.ref.sandboxId))).toEqual(
    Object.keys(records)
      .sort()
      .map((sandboxId) => ({ kind: "disk", ref: { installationId: "", sandboxId }, createdAt: null })),
  );
});

test("a disk of the release before is as old as its record", async () => {
  const layout = layoutOf(join(machine.dir, "older"));
  makeLayout(layout);
  const ref = { installationId: "a", sandboxId: "s" };
  const file = join((await ensureDisk(layout, ref, { now: 1000 })).dir, "disk.json");
  writeFileSync(file, JSON.stringify({ ...ref, uid: 1 }));
  utimesSync(file, 5, 5);
  expect(await listDisks(layout)).toEqual([{ kind: "disk", ref, createdAt: 5000 }]);
});

test.if(asRoot)("two sandboxes never share a user id, and one keeps its own", async () => {
  const layout = layoutOf(join(machine.dir, "uids-test"));
  makeLayout(layout);
  const first = claimUid(layout, "one");
  expect(claimUid(layout, "one")).toBe(first);
  freeUid(layout, "one");
  writeFileSync(join(layout.uids, String(first)), "somebody else");
  expect(claimUid(layout, "one")).toBe(first + 1);
  freeUid(layout, "one");
  expect(claimUid(layout, "one")).toBe(first + 1);
});
