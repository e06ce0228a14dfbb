import { useMutation } from "@tanstack/react-query";
import type { SandboxInfo } from "holdfast";
import { ErrorNote } from "../ui/error-note.tsx";
import { held } from "./use-sandbox.ts";

/** For what only a running sandbox has. To look never starts one; the button does. */
export function NotRunning({ sandbox, what }: { sandbox: SandboxInfo; what: string }) {
  const { id, state } = sandbox;
  const starting = useMutation({ mutationFn: async () => (await held(id)).start() });
  const [verb, doing] = state === "paused" ? ["Resume it", "Resuming …"] : ["Start it", "Starting …"];
  return (
    <div className="empty">
      <p>{words({ state, what })}</p>
      <ErrorNote error={starting.error} />
      {mayBeStarted.has(state) && (
        <button type="button" disabled={starting.isPending} onClick={() => starting.mutate()}>
          {starting.isPending ? doing : verb}
        </button>
      )}
    </div>
  );
}

const mayBeStarted: ReadonlySet<SandboxInfo["state"]> = new Set(["stopped", "paused", "failed"]);

function words({ state, what }: { state: SandboxInfo["state"]; what: string }): string {
  if (state === "creating") return `It is being started. Its ${what} show up here when it runs.`;
  if (state === "paused") return `It is paused, and shows its ${what} when it runs on.`;
  if (what === "files") return `It is ${state}. Its files are on its disk, and shown while it runs.`;
  return `It is ${state}, and has no ${what} now.`;
}
