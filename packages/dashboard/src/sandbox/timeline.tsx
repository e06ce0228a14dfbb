import { useQuery } from "@tanstack/react-query";
import { Sandbox, type SandboxEvent } from "holdfast";
import { moment } from "../format.ts";
import { about } from "../live.ts";
import { client } from "../server.ts";
import { ErrorNote } from "../ui/error-note.tsx";

/** What is kept of a long timeline; `holdfast events` has all of it. */
const SHOWN = 200;

/** Everything that happened to it, the latest first, with causes. Also of one that was deleted. */
export function Timeline({ id }: { id: string }) {
  const { data, error } = useQuery({
    queryKey: about(id, "timeline"),
    queryFn: () => Sandbox.events(id, { client }),
  });
  const latest = (data ?? []).slice(-SHOWN).reverse();
  return (
    <section className="panel timeline">
      <h2>Timeline</h2>
      <ErrorNote error={error} />
      <ol>
        {latest.map((event) => (
          <Entry key={event.seq} event={event} />
        ))}
      </ol>
      {(data?.length ?? 0) > SHOWN && <p className="soft">The latest {SHOWN} are shown.</p>}
    </section>
  );
}

function Entry({ event }: { event: SandboxEvent }) {
  const { at, type, cause, actor, detail } = event;
  const details = Object.entries(detail).map(([name, value]) => `${name} ${wordsOf(value)}`);
  return (
    <li>
      <time dateTime={at}>{moment(at)}</time>
      <div>
        <strong>{type.replaceAll("_", " ")}</strong>
        {cause !== undefined && <span className="cause"> {cause.replaceAll("_", " ")}</span>}
        {actor !== undefined && <span className="soft"> by {actor}</span>}
        {details.length > 0 && <div className="soft detail">{details.join(", ")}</div>}
      </div>
    </li>
  );
}

function wordsOf(value: unknown): string {
  return typeof value === "string" ? value : JSON.stringify(value);
}
