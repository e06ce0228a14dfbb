import { test } from "bun:test";

type AddTest = (name: string, body: () => Promise<void>, timeoutMs?: number) => void;

/**
 * A `test` that needs a program of the machine's. Where it is missing, a user gets a skipped test that says how to get
 * it; in CI the test fails, because there nobody would see that something was not tested.
 */
export function testWith({ program, from }: { program: string; from: string }): AddTest {
  if (Bun.which(program) !== null) return test;
  const reason = `needs ${program}: apt-get install ${from}`;
  if (process.env.CI !== "true") return (name) => test.skip(`${name} (${reason})`, () => {});
  return (name) =>
    test(name, () => {
      throw new Error(reason);
    });
}
