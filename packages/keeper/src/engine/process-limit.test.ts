import { expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { startTestKeeper } from "../test-keeper.ts";

test("the work has the limit, in every surface, and the keeper has its own", async () => {
  const ours = limitOf(process.pid);
  await using keeper = await startTestKeeper({ boot: { maxProcesses: 321 } });
  const { body: exec } = await keeper.call("/v1/exec", { command: "ulimit -Su; (ulimit -Su)" });
  expect(exec.stdout).toBe("321\n321\n");
  await keeper.call("/v1/sessions", { sessionId: "s" });
  expect((await keeper.call("/v1/sessions/s/exec", { command: "ulimit -Su" })).body.stdout).toBe("321\n");
  expect(limitOf(keeper.child.pid)).toBe(ours);
});

/** As the kernel has it: soft, then hard. */
function limitOf(pid: number): string | undefined {
  return /^Max processes .*$/m.exec(readFileSync(`/proc/${pid}/limits`, "utf8"))?.[0];
}
