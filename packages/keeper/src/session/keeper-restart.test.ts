import { expect, test } from "bun:test";
import { startTestKeeper } from "../test-keeper.ts";

for (const how of ["stopped", "crashed"] as const) {
  test(`a keeper that is ${how} leaves its sessions to the next one`, async () => {
    const first = await startTestKeeper();
    await first.call("/v1/sessions", { sessionId: "s", cwd: "/usr" });
    const exec = (keeper: typeof first, command: string) => keeper.call("/v1/sessions/s/exec", { command });
    await exec(first, "cd lib; A=(1 2); f() { echo in f; }");
    if (how === "stopped") {
      await first.call("/v1/shutdown", {});
      await first.child.exited;
    } else {
      await exec(first, "sleep 0.3"); // longer than a checkpoint takes
      await first.crash();
    }
    expect(first.processes()).toEqual([]);
    await using next = await startTestKeeper({ dir: first.dir });
    expect((await next.call("/v1/sessions")).body.sessions).toMatchObject([
      { sessionId: "s", state: "asleep" },
    ]);
    const { body } = await exec(next, 'echo "$PWD $A"; f');
    expect(body).toMatchObject({
      stdout: "/usr/lib 1\nin f\n",
      restored: { because: "keeper_lost", from: "checkpoint" },
    });
  });
}
