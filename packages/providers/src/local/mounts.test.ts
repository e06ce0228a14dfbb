import { expect, test } from "bun:test";
import { chmodSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { Machine } from "../../fixtures/machine.ts";

test("a sandbox sees what the operator allowed, writes where it may, and has places in memory of their size", async () => {
  const machine = await Machine.open();
  try {
    const shared = join(machine.dir, "shared");
    for (const dir of ["", "read", "write"]) mkdirSync(join(shared, dir));
    chmodSync(join(shared, "write"), 0o777);
    writeFileSync(join(shared, "read/note"), "of the host\n");
    const mounts = [
      { source: join(shared, "read"), target: "/data" },
      { source: join(shared, "write"), target: "/data/out", writable: true },
    ];
    // What is below another must be there to be covered.
    mkdirSync(join(shared, "read/out"));
    const ref = await machine.launch({ network: "none", mounts, tmpfs: { "/cache": 1, "/tmp": 1 } });
    const script = `cat /data/note; touch /data/x || echo refused; echo made > /data/out/made
      for d in /cache /tmp; do head -c 2000000 /dev/zero > $d/x || echo full; done`;
    expect(await machine.run(ref, "sh", "-c", script)).toMatchObject({
      stdout: "of the host\nrefused\nfull\nfull\n",
    });
    expect(readFileSync(join(shared, "write/made"), "utf8")).toBe("made\n");
    const outside = [{ source: "/etc", target: "/data" }];
    await expect(machine.launch({ network: "none", mounts: outside })).rejects.toMatchObject({
      code: "forbidden",
    });
  } finally {
    await machine.close();
  }
});
