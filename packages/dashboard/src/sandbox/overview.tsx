import type { SandboxInfo, Usage } from "holdfast";
import { useNow } from "../clock.ts";
import { age, countdown, inOwnTime, moment } from "../format.ts";
import { leftOf } from "../sandboxes/reap.ts";
import { ErrorNote } from "../ui/error-note.tsx";
import { Graphs } from "./graphs.tsx";
import { Timeline } from "./timeline.tsx";
import { useAbout } from "./use-sandbox.ts";

export function Overview({ sandbox, samples }: { sandbox: SandboxInfo; samples: readonly Usage[] }) {
  return (
    <div className="overview">
      <div>
        <WhyPanel sandbox={sandbox} />
        <Graphs sandbox={sandbox} samples={samples} />
        <Facts sandbox={sandbox} />
      </div>
      <Timeline id={sandbox.id} />
    </div>
  );
}

/** Why it lives, when it will be reaped and what prevents that, in the server's own words. */
function WhyPanel({ sandbox }: { sandbox: SandboxInfo }) {
  const { data: why, error } = useAbout(sandbox.id, "why", (one) => one.why());
  const now = useNow();
  const left = why?.reapsAt === undefined ? undefined : leftOf(why.reapsAt, sandbox, now);
  return (
    <section className="panel why">
      <h2>Why it lives, and what is next</h2>
      <ErrorNote error={error} />
      {why !== undefined && (
        <>
          <p className="next">{inOwnTime(why.next)}</p>
          {left !== undefined && why.heldAwakeBy.length === 0 && (
            <p className="countdown" role="timer">
              {left > 0 ? countdown(left) : "now, unless something runs"}
            </p>
          )}
          <ul>
            {why.heldAwakeBy.map((hold) => (
              <li key={hold}>held awake: {hold}</li>
            ))}
            {why.alive.map((reason) => (
              <li key={reason}>{inOwnTime(reason)}</li>
            ))}
            {why.claim !== undefined && <li>claimed by {why.claim.holder}</li>}
            {why.lastDeath !== undefined && (
              <li>
                last death, {moment(why.lastDeath.at)}: {why.lastDeath.cause.replaceAll("_", " ")},{" "}
                {why.lastDeath.detail}
              </li>
            )}
          </ul>
        </>
      )}
    </section>
  );
}

function Facts({ sandbox }: { sandbox: SandboxInfo }) {
  const now = useNow();
  const { id, spec, labels, limits, createdAt, startedAt, lastUsedAt } = sandbox;
  const facts: [string, string | undefined][] = [
    ["id", id],
    ["age", age(now - Date.parse(createdAt))],
    ["runs for", startedAt && age(now - Date.parse(startedAt))],
    ["last used", `${age(now - Date.parse(lastUsedAt))} ago`],
    ["image", spec.image],
    ["network", spec.network],
    ["limits", limits.detail ?? limits.state],
    [
      "labels",
      Object.entries(labels)
        .map(([key, value]) => `${key}=${value}`)
        .join(", ") || undefined,
    ],
  ];
  return (
    <section className="panel">
      <h2>Facts</h2>
      <dl className="facts">
        {facts
          .filter(([, value]) => value !== undefined)
          .map(([name, value]) => (
            <div key={name}>
              <dt>{name}</dt>
              <dd>{value}</dd>
            </div>
          ))}
      </dl>
    </section>
  );
}
