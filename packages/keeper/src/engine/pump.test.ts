import { expect, test } from "bun:test";
import { closeSync, existsSync, openSync, writeSync } from "node:fs";
import { makeNonBlocking, makePipe, type Pipe } from "./libc.ts";
import { Pump } from "./pump.ts";

/** A pump whose pipe we fill ourselves; what it hands over, call by call. */
function pumped() {
  const pipe = makePipe();
  const taken: Uint8Array[][] = [];
  const pump = new Pump(pipe, {
    take: (...pieces) => {
      taken.push(pieces);
    },
    room: () => undefined,
  });
  return { pump, pipe, writeFd: programsEnd(pipe), taken, bytes: () => Buffer.concat(taken.flat()) };
}

/** As a program has it, beside the pump's own. */
function programsEnd({ writeFd }: Pipe): number {
  return openSync(`/proc/self/fd/${writeFd}`, "w");
}

async function until(isSo: () => boolean): Promise<void> {
  for (let turns = 0; !isSo(); turns++) {
    if (turns > 5_000) throw new Error("it did not come to that");
    await Bun.sleep(1);
  }
}

test("a flood comes in few large parts, every byte in its order", async () => {
  const pipe = makePipe();
  const writeFd = programsEnd(pipe);
  makeNonBlocking(writeFd);
  const sent = Uint8Array.from({ length: 16 * 1024 * 1024 }, (_, i) => (i * 2_654_435_761) >>> 24);
  const taken: Uint8Array[] = [];
  let [at, calls] = [0, 0];
  // Whenever it comes to read, the pipe is full.
  const fill = () => {
    try {
      while (at < sent.length) at += writeSync(writeFd, sent, at, Math.min(65_536, sent.length - at));
      closeSync(writeFd);
    } catch (error) {
      expect((error as NodeJS.ErrnoException).code).toBe("EAGAIN");
    }
  };
  fill();
  new Pump(pipe, {
    take: (...pieces) => {
      calls += 1;
      taken.push(...pieces);
      if (at < sent.length) fill();
    },
    room: () => undefined,
  });
  const all = () => taken.reduce((sum, { length }) => sum + length, 0);
  await until(() => all() === sent.length);
  expect(Buffer.concat(taken).equals(sent)).toBe(true);
  expect(sent.length / calls).toBeGreaterThan(128 * 1024);
});

test("nothing is held back while there is no room for more", async () => {
  const pipe = makePipe();
  let taken = 0;
  const asked = Promise.withResolvers<void>();
  new Pump(pipe, {
    take: (...pieces) => {
      for (const { length } of pieces) taken += length;
    },
    room: () => {
      asked.resolve();
      return new Promise(() => {});
    },
  });
  const flood = Bun.spawn(["head", "-c", "10000000", "/dev/zero"], { stdout: pipe.writeFd });
  await asked.promise;
  expect(taken).toBeGreaterThan(0);
  flood.kill();
  await flood.exited;
});

test("what comes after a flood is taken at once, however little it is", async () => {
  const { pump, writeFd, taken, bytes } = pumped();
  makeNonBlocking(writeFd);
  for (let sent = 0; sent < 4 * 1024 * 1024; await Bun.sleep(0)) {
    try {
      sent += writeSync(writeFd, new Uint8Array(65_536));
    } catch {
      // full: it is read in the next turn
    }
  }
  await until(() => bytes().length === 4 * 1024 * 1024);
  const before = taken.length;
  writeSync(writeFd, "the last words");
  await until(() => taken.length > before);
  expect(Buffer.from(bytes()).subarray(-14).toString()).toBe("the last words");
  // Nobody closes the pipe: all that was written has been taken all the same.
  writeSync(writeFd, "!");
  await pump.settle();
  expect(bytes().at(-1)).toBe("!".charCodeAt(0));
  writeSync(writeFd, "too late");
  await Bun.sleep(20);
  expect(bytes().at(-1)).toBe("!".charCodeAt(0));
  closeSync(writeFd);
});

test("what is in the pipe when it settles is taken at once, all of it, and nothing that comes later", async () => {
  const { pump, writeFd, bytes } = pumped();
  const sent = Uint8Array.from({ length: 65_536 }, (_, i) => (i * 2_654_435_761) >>> 24);
  writeSync(writeFd, sent);
  const settled = pump.settle();
  writeSync(writeFd, "too late");
  await settled;
  expect(bytes().equals(sent)).toBe(true);
  closeSync(writeFd);
});

test("its own end is kept until the output has settled; then the pipe ends with the program's", async () => {
  const { pump, pipe, writeFd } = pumped();
  const isOpen = (fd: number) => existsSync(`/proc/self/fd/${fd}`);
  closeSync(writeFd);
  await Bun.sleep(20);
  expect([isOpen(pipe.readFd), isOpen(pipe.writeFd)]).toEqual([true, true]);
  await pump.settle();
  await until(() => !isOpen(pipe.readFd) && !isOpen(pipe.writeFd));
});

test("of a program that ends at once all is taken; its pipe is closed, unless something that it left may still write", async () => {
  const isOpen = (fd: number) => existsSync(`/proc/self/fd/${fd}`);
  for (const leavesSomething of [false, true]) {
    const { pump, pipe, writeFd, bytes } = pumped();
    writeSync(writeFd, "all");
    if (!leavesSomething) closeSync(writeFd);
    await pump.settle();
    await new Promise((turn) => setImmediate(turn));
    expect([bytes().toString(), isOpen(pipe.readFd)]).toEqual(["all", leavesSomething]);
    if (!leavesSomething) continue;
    for (let i = 0; i < 3; i++) {
      writeSync(writeFd, new Uint8Array(65_536)); // would block, were it not read
      await Bun.sleep(10);
    }
    expect(bytes().toString()).toBe("all");
    closeSync(writeFd);
    await until(() => !isOpen(pipe.readFd));
  }
});
