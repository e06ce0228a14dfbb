import { expect, test } from "bun:test";
import type { KeeperControl } from "@holdfast/core";
import { Keepers } from "./keepers.ts";

/** Lines whose ends a test decides. */
function someKeepers({ breaksAtOnce = (): boolean => false } = {}) {
  const lines: { onEnd: () => void; isOpen: boolean }[] = [];
  const keepers = new Keepers(
    () =>
      ({
        watch: async ({ onEnd }: { onEnd: () => void }) => {
          const line = { onEnd, isOpen: true };
          lines.push(line);
          if (breaksAtOnce()) onEnd();
          return {
            close: () => {
              line.isOpen = false;
            },
          };
        },
      }) as unknown as KeeperControl,
  );
  const ended: number[] = [];
  const connect = (admit: () => Promise<void> = async () => {}, now = 0) =>
    keepers.connect({
      instanceId: "i1",
      address: { kind: "unix", path: "/nowhere" },
      secret: "s",
      fence: 1,
      now,
      admit,
      onEnd: () => void ended.push(lines.length),
    });
  return { keepers, lines, ended, connect };
}

test("a line stands until it ends, and its end is told once", async () => {
  const { keepers, lines, ended, connect } = someKeepers();
  await connect();
  expect(keepers.link("i1")).toBeDefined();
  lines[0]?.onEnd();
  lines[0]?.onEnd();
  expect([keepers.link("i1"), ended]).toEqual([undefined, [1]]);
});

test("after a line that broke in its first second the next is refused for the rest of it", async () => {
  const { keepers, lines, connect } = someKeepers();
  await connect();
  lines[0]?.onEnd();
  expect(await connect(undefined, 999).catch(({ code }) => code)).toBe("unavailable");
  await connect(undefined, 1_000);
  // One that we dropped ourselves did not break.
  keepers.drop("i1");
  await connect(undefined, 1_001);
  expect(lines).toHaveLength(3);
});

test("a keeper that is not admitted has no line", async () => {
  const { keepers, lines, connect } = someKeepers();
  expect(await connect(() => Promise.reject(new Error("stale"))).catch(String)).toBe("Error: stale");
  expect([keepers.link("i1"), lines]).toEqual([undefined, []]);
});

test("a line that breaks as it is made is none, and the end of one that was replaced ends nothing", async () => {
  let breaks = true;
  const { keepers, lines, ended, connect } = someKeepers({ breaksAtOnce: () => breaks });
  expect(await connect().catch(({ code }) => code)).toBe("unavailable");
  expect([keepers.link("i1"), ended]).toEqual([undefined, []]);
  breaks = false;
  await connect();
  await connect();
  expect(lines.map(({ isOpen }) => isOpen)).toEqual([true, false, true]);
  lines[1]?.onEnd();
  expect([keepers.link("i1") !== undefined, ended]).toEqual([true, []]);
  keepers.close();
  keepers.close();
  expect(lines.at(-1)?.isOpen).toBe(false);
});
