// A limit is for what hangs, and not for a machine that is busy. `npm test` gives the same one to all files of a run;
// this is for `bun test FILE` by hand.
import { setDefaultTimeout } from "bun:test";

setDefaultTimeout(120_000);
