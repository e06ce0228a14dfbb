import { appendFileSync, existsSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { parsePoint, type Side } from "./point.ts";

export type Method = (...args: unknown[]) => unknown;

const folder = process.env.HOLDFAST_FAILPOINTS ?? "";
const armedFile = join(folder, "armed");
const traceFile = join(folder, "trace");
let armed = "";
let calls = 0;

/** The same method, with a point on each side of it. Without a label a call is no step of a life. */
export function wrapped(labelOf: (args: readonly unknown[]) => string | undefined, method: Method): Method {
  return async function (this: unknown, ...args: unknown[]): Promise<unknown> {
    const label = labelOf(args);
    const after = label === undefined ? () => {} : passing(label);
    const result = await method.apply(this, args);
    after();
    return result;
  };
}

/** Something begins that is called so: the server may end here, or where the answer is called. */
export function passing(label: string): () => void {
  if (existsSync(traceFile)) appendFileSync(traceFile, `${label}\n`);
  const last = isLast(label);
  if (last === "before") die();
  return () => {
    if (last === "after") die();
  };
}

/** Whether this very call is the one that was armed, and on which side of it the end is. */
function isLast(label: string): Side | undefined {
  const text = existsSync(armedFile) ? readFileSync(armedFile, "utf8") : "";
  if (text !== armed) [armed, calls] = [text, 0];
  if (text === "") return undefined;
  const point = parsePoint(text);
  if (point.label !== label || ++calls !== point.occurrence) return undefined;
  return point.side;
}

function die(): never {
  rmSync(armedFile);
  process.kill(process.pid, "SIGKILL");
  throw new Error("the kernel did not end this process");
}
