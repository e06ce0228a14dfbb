import { useQuery } from "@tanstack/react-query";
import { type LeaseInfo, Operator } from "holdfast";
import { useState } from "react";
import { moment } from "../format.ts";
import { listSandboxes, operators, SANDBOXES } from "../live.ts";
import { client } from "../server.ts";
import { ErrorNote } from "../ui/error-note.tsx";
import { Link } from "../ui/link.tsx";

const MOST = 500;

/** The record of every instance that exists, may exist, or lately did. */
export function Leases() {
  const [withGone, setWithGone] = useState(false);
  const { data, error } = useQuery({
    queryKey: operators("leases"),
    queryFn: allLeases,
    refetchOnMount: "always",
  });
  const sandboxes = useQuery({ queryKey: SANDBOXES, queryFn: listSandboxes });
  const names = new Map(sandboxes.data?.map(({ id, name }) => [id, name]));
  const wanted = (data ?? []).filter(({ phase }) => withGone || phase !== "gone");
  const shown = wanted.slice(0, MOST);
  return (
    <section className="panel" aria-labelledby="leases">
      <div className="bar">
        <h2 id="leases">Leases</h2>
        <span className="soft">An instance may exist only under one, and one ends only on evidence.</span>
        <span className="grow" />
        <label>
          <input type="checkbox" checked={withGone} onChange={(event) => setWithGone(event.target.checked)} />{" "}
          those that are gone, too
        </label>
      </div>
      <ErrorNote error={error} />
      {shown.length === 0 ? (
        <p className="empty">No lease: no instance exists or may exist.</p>
      ) : (
        <div className="scroll-x">
          <table className="stacked">
            <thead>
              <tr>
                <th scope="col">Instance</th>
                <th scope="col">Sandbox</th>
                <th scope="col">Provider</th>
                <th scope="col">Phase</th>
                <th scope="col">Since</th>
                <th scope="col">What is known</th>
              </tr>
            </thead>
            <tbody>
              {shown.map((lease) => (
                <tr key={lease.instanceId}>
                  <td data-label="Instance" className="mono">
                    {lease.instanceId}
                  </td>
                  <td data-label="Sandbox">
                    <Link to={{ page: "sandbox", id: lease.sandboxId, tab: "overview" }}>
                      {names.get(lease.sandboxId) ?? lease.sandboxId}
                    </Link>
                  </td>
                  <td data-label="Provider">{lease.provider}</td>
                  <td data-label="Phase">{lease.phase.replaceAll("_", " ")}</td>
                  <td data-label="Since">{moment(lease.createdAt)}</td>
                  <td data-label="Known">{wordsOf(lease)}</td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      )}
      {wanted.length > MOST && (
        <p className="soft">
          The latest {MOST} of {wanted.length} are shown.
        </p>
      )}
    </section>
  );
}

async function allLeases(): Promise<LeaseInfo[]> {
  const found: LeaseInfo[] = [];
  for await (const lease of (await Operator.connect({ client })).leases()) found.push(lease);
  return found.sort((a, b) => b.createdAt.localeCompare(a.createdAt));
}

function wordsOf({ evidence, stopReason, lastError, attempts, nextAttemptAt }: LeaseInfo): string {
  return [
    stopReason?.replaceAll("_", " "),
    evidence && `${evidence.kind.replaceAll("_", " ")}: ${evidence.detail}`,
    attempts > 0 && evidence === undefined && `${attempts} attempts to stop it`,
    nextAttemptAt && `next at ${moment(nextAttemptAt)}`,
    lastError,
  ]
    .filter(Boolean)
    .join("; ");
}
