import { expect, test } from "bun:test";
import { closeSync, readSync, writeSync } from "node:fs";
import { bytesWaiting, makeNarrowPipe, makeNonBlocking } from "./libc.ts";

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
