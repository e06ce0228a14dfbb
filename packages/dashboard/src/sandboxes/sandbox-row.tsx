import type { SandboxInfo } from "holdfast";
import { useNow } from "../clock.ts";
import { age } from "../format.ts";
import { Link } from "../ui/link.tsx";
import { StateBadge } from "../ui/state-badge.tsx";
import { reapOf } from "./reap.ts";

export function SandboxRow({
  sandbox,
  isSelected,
  onDelete,
}: {
  sandbox: SandboxInfo;
  isSelected: boolean;
  onDelete: () => void;
}) {
  const now = useNow();
  const reap = reapOf(sandbox, now);
  const { id, name, state, provider } = sandbox;
  return (
    <li className={isSelected ? "row selected" : "row"} data-sandbox={name}>
      <span className="name">
        <Link to={{ page: "sandbox", id, tab: "overview" }}>{name}</Link>
      </span>
      <StateBadge state={state} />
      <span className="provider">{provider}</span>
      <span className="age" title={`created ${new Date(sandbox.createdAt).toLocaleString()}`}>
        {age(now - Date.parse(sandbox.createdAt))}
      </span>
      <span className="idle" title={`last used ${new Date(sandbox.lastUsedAt).toLocaleString()}`}>
        {age(now - Date.parse(sandbox.lastUsedAt))}
      </span>
      <span className={reap.isSoon ? "reap soon" : "reap"} title={reap.because}>
        <span className="what">{reap.text}</span>
        <span className="because">{reap.because}</span>
      </span>
      <button type="button" className="quiet" onClick={onDelete} aria-label={`Delete ${name}`}>
        Delete
      </button>
    </li>
  );
}
