import { Leases } from "./leases.tsx";
import { Providers } from "./providers.tsx";
import { Sweep } from "./sweep.tsx";

/** For whoever runs the server. */
export function OperatorPage() {
  return (
    <>
      <div className="bar">
        <h1>Operator</h1>
        <span className="grow" />
        <a href="/docs">API page</a>
      </div>
      <Providers />
      <Sweep />
      <Leases />
    </>
  );
}
