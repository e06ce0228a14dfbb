import { useMutation, useQuery } from "@tanstack/react-query";
import { Operator, type Sandbox, type SandboxInfo } from "holdfast";
import { useState } from "react";
import { useNow } from "../clock.ts";
import { go } from "../router.ts";
import { DeleteDialog } from "../sandboxes/delete-dialog.tsx";
import { type Reap, reapOf } from "../sandboxes/reap.ts";
import { client } from "../server.ts";
import { ErrorNote } from "../ui/error-note.tsx";
import { StateBadge } from "../ui/state-badge.tsx";
import { ForkDialog } from "./fork-dialog.tsx";
import { held, useAbout } from "./use-sandbox.ts";

type Act = (sandbox: Sandbox) => Promise<unknown>;

export function SandboxHeader({ sandbox }: { sandbox: SandboxInfo }) {
  const { id, name, state, generation, continuity, provider } = sandbox;
  const [asking, setAsking] = useState<"fork" | "delete">();
  const canPause = useCanPause(provider);
  const reap = useReap(sandbox);
  const acting = useMutation({ mutationFn: async (act: Act) => act(await held(id)) });
  const action = (label: string, act: Act) => (
    <button type="button" disabled={acting.isPending} onClick={() => acting.mutate(act)}>
      {label}
    </button>
  );
  const isRunning = state === "running";
  return (
    <header className="sandbox-header">
      <div className="bar">
        <h1>{name}</h1>
        <StateBadge state={state} />
        <span className="soft">
          generation {generation} · {continuity} · {provider}
        </span>
        <span className={reap.isSoon ? "reap soon" : "reap"} title={reap.because}>
          <span className="what">{reap.text}</span>
        </span>
        <span className="grow" />
        {!isRunning && state !== "paused" && action("Start", (one) => one.start())}
        {state === "paused" && action("Resume", (one) => one.resume())}
        {isRunning && canPause && action("Pause", (one) => one.pause())}
        {isRunning && action("Stop", (one) => one.stop())}
        <button type="button" onClick={() => setAsking("fork")}>
          Fork
        </button>
        {action("Snapshot", async (one) => {
          await one.snapshot();
          go({ page: "sandbox", id, tab: "snapshots" });
        })}
        <button type="button" onClick={() => setAsking("delete")}>
          Delete
        </button>
      </div>
      <ErrorNote error={acting.error} />
      {sandbox.failure !== undefined && <ErrorNote error={new Error(sandbox.failure)} />}
      {asking === "fork" && <ForkDialog sandbox={sandbox} onClose={() => setAsking(undefined)} />}
      {asking === "delete" && (
        <DeleteDialog
          sandbox={sandbox}
          onClose={() => setAsking(undefined)}
          onDone={() => go({ page: "sandboxes" })}
        />
      )}
    </header>
  );
}

/** With what its keeper knows: the list has only what the server knows by itself. */
function useReap(sandbox: SandboxInfo): Reap {
  const now = useNow();
  const { data: why } = useAbout(sandbox.id, "why", (one) => one.why());
  const heldAwakeBy = why?.heldAwakeBy ?? sandbox.heldAwakeBy;
  return reapOf(
    { ...sandbox, heldAwakeBy, ...(why?.reapsAt !== undefined && { reapsAt: why.reapsAt }) },
    now,
  );
}

function useCanPause(kind: string): boolean {
  const { data } = useQuery({
    queryKey: ["providers"],
    queryFn: async () => (await Operator.connect({ client })).providers(),
  });
  return data?.some(({ provider, capabilities }) => provider === kind && capabilities.pause) ?? false;
}
