import type { SandboxInfo } from "holdfast";
import { useEffect, useRef } from "react";
import { useKeys } from "../keyboard.ts";
import { go, type Tab, tabs } from "../router.ts";
import { Link } from "../ui/link.tsx";
import { Files } from "./files.tsx";
import { Overview } from "./overview.tsx";
import { Ports } from "./ports.tsx";
import { Processes } from "./processes.tsx";
import { SandboxHeader } from "./sandbox-header.tsx";
import { Sessions } from "./sessions.tsx";
import { Snapshots } from "./snapshots.tsx";
import { Terminals } from "./terminals.tsx";
import { Timeline } from "./timeline.tsx";
import { useInside } from "./use-inside.ts";
import { useSandbox } from "./use-sandbox.ts";

export function SandboxPage({ id, tab }: { id: string; tab: Tab }) {
  const sandbox = useSandbox(id);
  useKeys({ Escape: toList });
  if (sandbox === undefined) return null;
  if (sandbox === null) return <Gone id={id} />;
  return <Known sandbox={sandbox} tab={tab} />;
}

const toList = () => go({ page: "sandboxes" });

function Known({ sandbox, tab }: { sandbox: SandboxInfo; tab: Tab }) {
  const { id } = sandbox;
  const samples = useInside(sandbox);
  const list = useRef<HTMLElement>(null);
  // On a phone not all of them fit; the one that is open is to be seen.
  // biome-ignore lint/correctness/useExhaustiveDependencies: another tab is what moves them
  useEffect(() => {
    list.current?.querySelector("[aria-current]")?.scrollIntoView({ inline: "nearest", block: "nearest" });
  }, [tab]);
  return (
    <article>
      <SandboxHeader sandbox={sandbox} />
      <nav ref={list} className="tabs" aria-label={sandbox.name}>
        {tabs.map((one) => (
          <Link
            key={one}
            to={{ page: "sandbox", id, tab: one }}
            aria-current={one === tab ? "page" : undefined}
          >
            {one}
          </Link>
        ))}
      </nav>
      {tab === "overview" && <Overview sandbox={sandbox} samples={samples} />}
      {tab === "processes" && <Processes sandbox={sandbox} />}
      {tab === "terminals" && <Terminals sandbox={sandbox} />}
      {tab === "sessions" && <Sessions sandbox={sandbox} />}
      {tab === "files" && <Files sandbox={sandbox} />}
      {tab === "ports" && <Ports sandbox={sandbox} />}
      {tab === "snapshots" && <Snapshots sandbox={sandbox} />}
    </article>
  );
}

/** What happened to it stays known for a while. */
function Gone({ id }: { id: string }) {
  return (
    <article>
      <div className="bar">
        <h1>{id}</h1>
        <span className="soft">is not here, or not any more</span>
        <span className="grow" />
        <Link to={{ page: "sandboxes" }}>All sandboxes</Link>
      </div>
      <Timeline id={id} />
    </article>
  );
}
