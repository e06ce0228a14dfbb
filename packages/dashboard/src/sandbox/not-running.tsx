import { useMutation } from "@tanstack/react-query";
import type { SandboxInfo } from "holdfast";
import { ErrorNote } from "../ui/error-note.tsx";
import { held } from "./use-sandbox.ts";

/** For what only a running sandbox has. To look never starts one; the button does. */
export function NotRunning({ sandbox, what }: { sandbox: SandboxInfo; what: string }) {
  const starting = useMutation({ mutationFn: async () => (await held(sandbox.id)).start() });
  return (
    <div className="empty">
      <p>
        It is {sandbox.state}, and has no {what} now.
      </p>
      <ErrorNote error={starting.error} />
      <button type="button" disabled={starting.isPending} onClick={() => starting.mutate()}>
        {starting.isPending ? "Starting …" : "Start it"}
      </button>
    </div>
  );
}
