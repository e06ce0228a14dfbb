import { useMutation } from "@tanstack/react-query";
import { Operator, type SweepReport } from "holdfast";
import { useState } from "react";
import { moment } from "../format.ts";
import { client } from "../server.ts";
import { ConfirmDialog } from "../ui/confirm-dialog.tsx";
import { ErrorNote } from "../ui/error-note.tsx";

const sweep = async (dryRun: boolean) => (await Operator.connect({ client })).sweep({ dryRun });

/** Compares what the providers hold with what should be there. The dry run only says what it would do. */
export function Sweep() {
  const [confirming, setConfirming] = useState(false);
  const trying = useMutation({ mutationFn: sweep });
  const report = trying.data;
  return (
    <section className="panel" aria-labelledby="sweep">
      <div className="bar">
        <h2 id="sweep">Sweep</h2>
        <span className="soft">What the providers hold, beside what should be there.</span>
        <span className="grow" />
        <button type="button" disabled={trying.isPending} onClick={() => trying.mutate(true)}>
          Dry run
        </button>
        <button type="button" disabled={trying.isPending} onClick={() => setConfirming(true)}>
          Sweep now
        </button>
      </div>
      <ErrorNote error={trying.error} />
      {report?.providers.map((one) => (
        <Found key={one.provider} found={one} dryRun={report.dryRun} />
      ))}
      {confirming && (
        <ConfirmDialog
          title="Sweep now?"
          verb="Sweep"
          act={() => trying.mutateAsync(false)}
          onClose={() => setConfirming(false)}
        >
          <p>
            What belongs to this installation and to no sandbox is ended and removed. The dry run says what
            that is.
          </p>
        </ConfirmDialog>
      )}
    </section>
  );
}

function Found({ found: one, dryRun }: { found: SweepReport["providers"][number]; dryRun: boolean }) {
  return (
    <div>
      <p>
        <strong>{one.provider}</strong>: {one.found.instances} instances, {one.found.disks} disks;{" "}
        {one.adopted} as they should be; {one.foreign} of others, not touched.{" "}
        {one.actions.length === 0 ? "Nothing to do." : dryRun ? "It would:" : "Done or begun:"}
      </p>
      {one.braked !== undefined && <ErrorNote error={new Error(one.braked)} />}
      {one.error !== undefined && <ErrorNote error={new Error(one.error)} />}
      <ul className="actions">
        {one.actions.map((action) => (
          <li key={`${action.do} ${action.instance}`}>
            <strong>{action.do.replaceAll("_", " ")}</strong> {action.instance} of {action.sandboxId}:{" "}
            {action.because}
            {action.at !== undefined && `, not before ${moment(action.at)}`}
          </li>
        ))}
      </ul>
    </div>
  );
}
