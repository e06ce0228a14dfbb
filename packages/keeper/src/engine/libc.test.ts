import { expect, test } from "bun:test";
import { closeSync, readSync, writeSync } from "node:fs";
import {
  bytesWaiting,
  exitStatusOf,
  isAbandoned,
  makeNarrowPipe,
  makeNonBlocking,
  makePipe,
} from "./libc.ts";

test("a narrow pipe holds one piece, and the next once that is read", () => {
  const { readFd, writeFd } = makeNarrowPipe();
  makeNonBlocking(writeFd);
  const read = () => {
    const piece = Buffer.alloc(100);
    return piece.toString("utf8", 0, readSync(readFd, piece));
  };
  writeSync(writeFd, "first");
  expect(() => writeSync(writeFd, "second")).toThrow("EAGAIN");
  expect([bytesWaiting(readFd), read()]).toEqual([5, "first"]);
  writeSync(writeFd, "second");
  expect([bytesWaiting(readFd), read()]).toEqual([6, "second"]);
  for (const fd of [readFd, writeFd]) closeSync(fd);
});

test("a pipe is abandoned when its last writer has closed it, whatever is still in it", () => {
  const { readFd, writeFd } = makePipe();
  writeSync(writeFd, "left");
  expect(isAbandoned(readFd)).toBe(false);
  closeSync(writeFd);
  expect(isAbandoned(readFd)).toBe(true);
  closeSync(readFd);
});

test("a child that has exited says how, and is waited for by the runtime all the same", async () => {
  const child = Bun.spawn(["sh", "-c", "exit 7"]);
  while (exitStatusOf(child.pid) === undefined); // without a turn in which the runtime could hear of it
  expect([exitStatusOf(child.pid), child.exitCode]).toEqual([7, null]);
  expect(await child.exited).toBe(7);
  expect(exitStatusOf(child.pid)).toBeUndefined();
  await using runs = Bun.spawn(["sleep", "60"]);
  expect(exitStatusOf(runs.pid)).toBeUndefined();
  runs.kill("SIGTERM");
  await runs.exited;
  expect([exitStatusOf(process.pid), exitStatusOf(2 ** 30)]).toEqual([undefined, undefined]);
});
