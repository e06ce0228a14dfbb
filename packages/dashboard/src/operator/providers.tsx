import { useQuery } from "@tanstack/react-query";
import { Operator, type ProviderInfo } from "holdfast";
import { bytes } from "../format.ts";
import { operators } from "../live.ts";
import { client } from "../server.ts";
import { ErrorNote } from "../ui/error-note.tsx";

export function Providers() {
  const { data, error, refetch, isFetching } = useQuery({
    queryKey: operators("providers"),
    queryFn: async () => (await Operator.connect({ client })).providers(),
    refetchOnMount: "always",
  });
  return (
    <section aria-labelledby="providers">
      <div className="bar">
        <h2 id="providers">Providers</h2>
        <span className="grow" />
        <button type="button" className="quiet" disabled={isFetching} onClick={() => void refetch()}>
          Measure again
        </button>
      </div>
      <ErrorNote error={error} />
      <div className="cards">
        {data?.map((provider) => (
          <ProviderCard key={provider.provider} provider={provider} />
        ))}
      </div>
    </section>
  );
}

function ProviderCard({ provider: one }: { provider: ProviderInfo }) {
  const { capabilities, capacity, defaultBecause } = one;
  const can = [
    capabilities.images && "images",
    capabilities.pause && "pause",
    capabilities.users && "users",
    capabilities.limits.enforced && "limits",
    ...capabilities.runtimes,
  ].filter((word) => typeof word === "string");
  return (
    <div className="panel">
      <div className="bar">
        <h3>{one.provider}</h3>
        {one.isDefault && <span className="soft">default</span>}
        <span className="grow" />
        <span className={`state ${one.state === "ok" ? "running" : "failed"}`}>{one.state}</span>
      </div>
      {one.reason !== undefined && <ErrorNote error={new Error(one.reason)} />}
      {defaultBecause !== undefined && <p className="soft">Because {defaultBecause}.</p>}
      <Meter name="Sandboxes" amount={capacity.slots} show={String} />
      <Meter name="Memory promised" amount={capacity.memory} show={bytes} />
      <Meter name="Disk" amount={capacity.disk} show={bytes} />
      <p className="soft">{can.length === 0 ? "" : `Can do: ${can.join(", ")}.`}</p>
    </div>
  );
}

function Meter(props: {
  name: string;
  amount: ProviderInfo["capacity"]["slots"];
  show: (value: number) => string;
}) {
  const { name, amount, show } = props;
  if ("unknown" in amount)
    return (
      <p className="soft">
        {name}: not known ({amount.unknown})
      </p>
    );
  const { used, total } = amount;
  if (total === null)
    return (
      <p>
        {name} <span className="soft">{show(used)}</span>
      </p>
    );
  const share = total === 0 ? 0 : Math.min(100, (100 * used) / total);
  return (
    <div>
      {name} <span className="soft">{`${show(used)} of ${show(total)}`}</span>
      <div className="meter">
        <div style={{ width: `${share}%` }} />
      </div>
    </div>
  );
}
