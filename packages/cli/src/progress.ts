import type { SandboxEvent } from "holdfast";
import type { Context } from "./context.ts";
import { oneLine } from "./style.ts";
import { amount } from "./units.ts";

/** What takes long while a sandbox is made is told on stderr: in one line on a terminal, else line by line. */
export function progressOf({ output, quiet }: Pick<Context, "output" | "quiet">): {
  onProgress: ((event: SandboxEvent) => void) | undefined;
  /** Leaves a terminal's line to whoever writes next. */
  end(): void;
} {
  if (output === "json" || quiet) return { onProgress: undefined, end: () => undefined };
  const { stderr } = process;
  let isOpen = false;
  return {
    onProgress(event) {
      const said = saidOf(event);
      if (said === undefined) return;
      const text = oneLine(said);
      stderr.write(stderr.isTTY ? `\r\u001b[K${text.slice(0, stderr.columns - 1)}` : `holdfast: ${text}\n`);
      isOpen = stderr.isTTY === true;
    },
    end() {
      if (isOpen) stderr.write("\r\u001b[K");
      isOpen = false;
    },
  };
}

function saidOf({ type, detail }: SandboxEvent): string | undefined {
  if (type === "fetching") return `fetching ${fetched(detail)}`;
  if (type === "restoring") return `copying the snapshot: ${copied(detail)}`;
  return undefined;
}

/** Of a `restoring` event, for one sandbox or the sum of several. */
export function copied({ copiedBytes, sizeBytes }: Record<string, unknown>): string {
  return `${amount(Number(copiedBytes))} of ${amount(Number(sizeBytes))}`;
}

function fetched(detail: Record<string, unknown>): string {
  const { image, layers, layersDone, receivedBytes, totalBytes } = detail;
  const counts = typeof layers === "number" && layers > 0 ? `: ${layersDone} of ${layers} layers` : "";
  const sizes =
    typeof receivedBytes === "number" && typeof totalBytes === "number" && totalBytes > 0
      ? `, ${amount(receivedBytes)} of ${amount(totalBytes)}`
      : "";
  return `the image ${image}${counts}${sizes}`;
}
