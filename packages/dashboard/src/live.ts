import { type Change, followChanges, Sandbox, type SandboxInfo } from "holdfast";
import { useEffect, useState } from "react";
import { client, isSignedOut, queries } from "./server.ts";

export const SANDBOXES = ["sandboxes"];

/** Everything that was asked about one sandbox; asked anew when the sandbox changes. */
export function about(id: string, ...what: string[]): string[] {
  return ["about", id, ...what];
}

export async function listSandboxes(): Promise<SandboxInfo[]> {
  return (await Sandbox.list({ client })).map(({ info }) => info);
}

/** What whoever runs the server looks at: asked anew, while it is shown, when any sandbox changes. */
export function operators(what: string): string[] {
  return ["operator", what];
}

// Changes come in bursts: one drawing for all of a moment.
const FLUSH_MS = 60;
// All leases and a measurement are more to ask for: at most so often, however much happens.
const OPERATOR_MS = 1_000;

/** Keeps what is shown true, by the server's own events, while the page is seen. Says whether the line stands. */
export function useLive({ onSignedOut }: { onSignedOut: () => void }): "live" | "lost" {
  const [line, setLine] = useState<"live" | "lost">("live");
  useEffect(() => {
    let following: AbortController | undefined;
    const update = () => {
      following?.abort();
      following = undefined;
      if (document.visibilityState === "hidden") return;
      following = new AbortController();
      const { signal } = following;
      follow({ signal, onLine: setLine }).catch((error: unknown) => {
        if (signal.aborted) return;
        if (isSignedOut(error)) onSignedOut();
        else setLine("lost");
      });
    };
    update();
    document.addEventListener("visibilitychange", update);
    return () => {
      document.removeEventListener("visibilitychange", update);
      following?.abort();
    };
  }, [onSignedOut]);
  return line;
}

async function follow(options: {
  signal: AbortSignal;
  onLine: (line: "live" | "lost") => void;
}): Promise<void> {
  const { signal, onLine } = options;
  const onConnection = (change: "lost" | "back") => onLine(change === "lost" ? "lost" : "live");
  const pending = new Pending();
  for await (const change of followChanges({ client, signal, onConnection })) {
    onLine("live");
    pending.add(change);
  }
}

/** Changes that were told and are not shown yet. */
class Pending {
  #changes: Change[] = [];
  #timer: ReturnType<typeof setTimeout> | undefined;
  #operatorTimer: ReturnType<typeof setTimeout> | undefined;
  #listing: Promise<void> | undefined;

  add(change: Change): void {
    this.#operatorTimer ??= setTimeout(() => {
      this.#operatorTimer = undefined;
      void queries.invalidateQueries({ queryKey: ["operator"] }, { cancelRefetch: false });
    }, OPERATOR_MS);
    if (change.type === "resync") {
      this.#listing = this.#list();
      return;
    }
    this.#changes.push(change);
    this.#timer ??= setTimeout(() => void this.#flush(), FLUSH_MS);
  }

  async #list(): Promise<void> {
    const fresh = await listSandboxes().catch(() => undefined);
    if (fresh === undefined) return;
    queries.setQueryData(SANDBOXES, fresh);
    await queries.invalidateQueries({ queryKey: ["about"] });
  }

  async #flush(): Promise<void> {
    // A list that is on its way may be older than what was told since: that comes on top of it.
    await this.#listing;
    this.#timer = undefined;
    const changes = this.#changes;
    this.#changes = [];
    queries.setQueryData<SandboxInfo[]>(SANDBOXES, (before) => before && applied(before, changes));
    for (const id of new Set(changes.map(idOf))) await queries.invalidateQueries({ queryKey: about(id) });
  }
}

/** The list after these changes; new ones come last, as they do in the server's own. */
function applied(before: readonly SandboxInfo[], changes: readonly Change[]): SandboxInfo[] {
  const all = new Map(before.map((sandbox) => [sandbox.id, sandbox]));
  for (const change of changes) {
    if (change.type === "changed") all.set(change.sandbox.id, change.sandbox);
    if (change.type === "gone") all.delete(change.sandboxId);
  }
  return [...all.values()];
}

function idOf(change: Change): string {
  if (change.type === "changed") return change.sandbox.id;
  return change.type === "gone" ? change.sandboxId : "";
}
