import type { SandboxInfo, Usage } from "holdfast";
import { bytes } from "../format.ts";

interface Curve {
  readonly name: string;
  readonly now: string;
  readonly values: readonly number[];
  /** The top of the graph, unless a value is higher. */
  readonly full: number;
}

/** What it uses, in the last minutes that somebody looked. */
export function Graphs({ sandbox, samples }: { sandbox: SandboxInfo; samples: readonly Usage[] }) {
  if (sandbox.state !== "running")
    return (
      <section className="panel">
        <h2>Resources</h2>
        <p className="soft">It does not run, and uses nothing but its disk.</p>
      </section>
    );
  return (
    <section className="panel">
      <h2>Resources</h2>
      <div className="graphs">
        {curvesOf(samples).map((curve) => (
          <Graph key={curve.name} curve={curve} />
        ))}
      </div>
    </section>
  );
}

function curvesOf(samples: readonly Usage[]): Curve[] {
  const last = samples.at(-1);
  const cpu = cpuShares(samples);
  const memory = samples.map(({ memoryBytes }) => memoryBytes);
  const disk = samples.map(({ diskBytes }) => diskBytes);
  const isWhole = last?.isDiskWhole !== false;
  return [
    { name: "CPU", now: cpu.length === 0 ? "…" : `${cpu.at(-1)?.toFixed(0)} %`, values: cpu, full: 100 },
    {
      name: "Memory",
      now: last === undefined ? "…" : bytes(last.memoryBytes),
      values: memory,
      full: last?.memoryLimitBytes ?? Math.max(64 * 1024 ** 2, ...memory) * 1.25,
    },
    {
      name: "Disk",
      now: last === undefined ? "…" : `${isWhole ? "" : "over "}${bytes(last.diskBytes)}`,
      values: disk,
      full: Math.max(1024 ** 2, ...disk) * 1.25,
    },
  ];
}

/** In percent of one core, between each sample and the one before. */
function cpuShares(samples: readonly Usage[]): number[] {
  return samples.slice(1).map((sample, at) => {
    const before = samples[at];
    const ms = before === undefined ? 0 : Date.parse(sample.at) - Date.parse(before.at);
    return ms <= 0 || before === undefined ? 0 : Math.max(0, (100 * (sample.cpuMs - before.cpuMs)) / ms);
  });
}

const [WIDTH, HEIGHT, MOST] = [240, 56, 120];

function Graph({ curve: { name, now, values, full } }: { curve: Curve }) {
  const top = Math.max(full, ...values);
  const points = values.map((value, at) => {
    const x = WIDTH - (values.length - 1 - at) * (WIDTH / MOST);
    return `${x.toFixed(1)},${(HEIGHT - (value / top) * (HEIGHT - 2) - 1).toFixed(1)}`;
  });
  return (
    <figure>
      <figcaption>
        {name} <strong>{now}</strong>
      </figcaption>
      <svg
        viewBox={`0 0 ${WIDTH} ${HEIGHT}`}
        preserveAspectRatio="none"
        role="img"
        aria-label={`${name}: ${now}`}
      >
        <polyline points={points.join(" ")} />
      </svg>
    </figure>
  );
}
