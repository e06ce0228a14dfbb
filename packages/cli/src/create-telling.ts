import { type CreateOptions, type CreateSandbox, Sandbox } from "holdfast";
import type { Context } from "./context.ts";
import { progressOf } from "./progress.ts";

// What is there sooner needs no word, and is not made slower by the calls that a word takes.
const TELL_AFTER_MS = 300;

type Asked = Omit<CreateOptions, "onProgress"> & { idempotencyKey: string };

/** Makes a sandbox, and tells what happens if that takes its time. */
export async function createTelling(
  spec: CreateSandbox,
  asked: Asked,
  context: Pick<Context, "output" | "quiet">,
): Promise<Sandbox> {
  const { onProgress, end } = progressOf(context);
  const over = new AbortController();
  // What is told is worth nothing without what it is about, and no reason to give that up.
  if (onProgress !== undefined)
    tellLater(spec, asked, { onProgress, signal: over.signal }).catch(() => undefined);
  try {
    return await Sandbox.create(spec, asked);
  } finally {
    over.abort();
    end();
  }
}

type Telling = { onProgress: NonNullable<CreateOptions["onProgress"]>; signal: AbortSignal };

/** The same call, which makes no second sandbox, says which it is. */
async function tellLater(spec: CreateSandbox, asked: Asked, { onProgress, signal }: Telling): Promise<void> {
  await Bun.sleep(TELL_AFTER_MS);
  const sandbox = await Sandbox.create(spec, { ...asked, wait: false, signal });
  for await (const event of sandbox.followEvents({ signal })) onProgress(event);
}
