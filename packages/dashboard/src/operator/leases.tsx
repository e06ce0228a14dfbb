import { useQuery } from "@tanstack/react-query";
import { type LeaseInfo, Operator } from "holdfast";
import { useState } from "react";
import { moment } from "../format.ts";
import { client } from "../server.ts";
import { ErrorNote } from "../ui/error-note.tsx";
import { Link } from "../ui/link.tsx";

const MOST = 500;

/** The record of every instance that exists, may exist, or lately did. */
export function Leases() {
  const [withGone, setWithGone] = useState(false);
  const { data, error } = useQuery({
    queryKey: ["about", "leases"],
    queryFn: allLeases,
    refetchOnMount: "always",
  });
  const shown = (data ?? []).filter(({ phase }) => withGone || phase !== "gone").slice(0, MOST);
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
          <table>
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
                  <td className="mono">{lease.instanceId}</td>
                  <td>
                    <Link to={{ page: "sandbox", id: lease.sandboxId, tab: "overview" }}>
                      {lease.sandboxId}
                    </Link>
                  </td>
                  <td>{lease.provider}</td>
                  <td>{lease.phase.replaceAll("_", " ")}</td>
                  <td>{moment(lease.createdAt)}</td>
                  <td>{wordsOf(lease)}</td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      )}
    </section>
  );
}

async function allLeases(): Promise<LeaseInfo[]> {
  const found: LeaseInfo[] = [];
  for await (const lease of (await Operator.connect({ client })).leases()) found.push(lease);
  return found.reverse();
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
