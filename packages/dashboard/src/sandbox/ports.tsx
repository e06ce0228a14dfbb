import { useMutation } from "@tanstack/react-query";
import type { SandboxInfo, SandboxPortInfo } from "holdfast";
import { ErrorNote } from "../ui/error-note.tsx";
import { NotRunning } from "./not-running.tsx";
import { held, useAbout } from "./use-sandbox.ts";

export function Ports({ sandbox }: { sandbox: SandboxInfo }) {
  const { id, state } = sandbox;
  const list = useAbout(id, ["inside", "ports"], (one) => one.ports.list());
  const changing = useMutation({
    mutationFn: async ({ port, url }: SandboxPortInfo) => {
      const { ports } = await held(id);
      return url === undefined ? ports.expose(port) : ports.close(port);
    },
    onSettled: () => list.refetch(),
  });
  if (list.data?.length === 0 && state !== "running") return <NotRunning sandbox={sandbox} what="ports" />;
  if (list.data?.length === 0)
    return (
      <p className="empty">
        Nothing listens inside, and nothing is exposed. A server that is started in the sandbox shows up here.
      </p>
    );
  return (
    <div className="scroll-x">
      <ErrorNote error={list.error ?? changing.error} />
      <table className="stacked">
        <thead>
          <tr>
            <th scope="col">Port</th>
            <th scope="col">Inside</th>
            <th scope="col">Address</th>
            <th scope="col">
              <span className="unseen">Actions</span>
            </th>
          </tr>
        </thead>
        <tbody>
          {list.data?.map((port) => (
            <tr key={port.port}>
              <td data-label="Port">{port.port}</td>
              <td data-label="Inside">{port.listening ? "listens" : "nothing listens"}</td>
              <td data-label="Address">
                {port.url === undefined ? (
                  <span className="soft">none</span>
                ) : (
                  <a href={port.url} target="_blank" rel="noopener noreferrer">
                    {port.url}
                  </a>
                )}
              </td>
              <td>
                <button type="button" disabled={changing.isPending} onClick={() => changing.mutate(port)}>
                  {port.url === undefined ? "Expose" : "Close"}
                </button>
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}
