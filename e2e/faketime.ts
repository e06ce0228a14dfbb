import { existsSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

const library = ["x86_64", "aarch64"]
  .map((machine) => `/usr/lib/${machine}-linux-gnu/faketime/libfaketimeMT.so.1`)
  .find((path) => existsSync(path));

/** Why no clock can be set here; `undefined` if one can. */
export const missingFaketime =
  library === undefined ? "needs libfaketime: apt-get install faketime" : undefined;

/** A machine's clock that can be set while programs look at it; time that only ever grows goes on as it is. */
export class FakeClock {
  readonly #dir = mkdtempSync(join(tmpdir(), "holdfast-faketime-"));

  constructor() {
    this.set(0);
  }

  /** The environment of a program that believes it. */
  get env(): Record<string, string> {
    return {
      LD_PRELOAD: library ?? "",
      FAKETIME_TIMESTAMP_FILE: this.#file,
      FAKETIME_NO_CACHE: "1",
      FAKETIME_DONT_FAKE_MONOTONIC: "1",
    };
  }

  /** So far from the real time, forward or back. */
  set(seconds: number): void {
    writeFileSync(this.#file, `${seconds < 0 ? "" : "+"}${seconds}\n`);
  }

  /** May be called twice. */
  close(): void {
    rmSync(this.#dir, { recursive: true, force: true });
  }

  get #file(): string {
    return join(this.#dir, "now");
  }
}
