import type { SandboxInfo, Usage, Why } from "holdfast";
import { useEffect, useState } from "react";
import { about } from "../live.ts";
import { queries } from "../server.ts";
import { held } from "./use-sandbox.ts";

// Four minutes of samples, one every two seconds.
const KEPT = 120;

// That work held it awake passes without anything that would be told: looked at with every fifth sample.
const LOOK_AT_HOLDS = 5;

/** What a running sandbox uses, while the page is seen; and a look at what is in it whenever that changes. */
export function useInside({ id, state, generation }: SandboxInfo): readonly Usage[] {
  const [samples, setSamples] = useState<readonly Usage[]>([]);
  // biome-ignore lint/correctness/useExhaustiveDependencies: a new generation is another instance, and counts anew
  useEffect(() => {
    if (state !== "running") return;
    let looking: AbortController | undefined;
    const update = () => {
      looking?.abort();
      looking = undefined;
      if (document.visibilityState === "hidden") return;
      looking = new AbortController();
      const { signal } = looking;
      const take = (sample: Usage) => setSamples((before) => [...before, sample].slice(-KEPT));
      // It stopped, or its keeper is too old to say: there is nothing to draw, and the list says the rest.
      follow({ id, signal, take }).catch(() => undefined);
    };
    setSamples([]);
    update();
    document.addEventListener("visibilitychange", update);
    return () => {
      document.removeEventListener("visibilitychange", update);
      looking?.abort();
    };
  }, [id, state, generation]);
  return samples;
}

async function follow(of: { id: string; signal: AbortSignal; take: (sample: Usage) => void }): Promise<void> {
  const { id, signal, take } = of;
  const sandbox = await held(id);
  let inside: string | undefined;
  let samples = 0;
  for await (const sample of sandbox.followUsage({ signal })) {
    take(sample);
    samples++;
    if (inside !== undefined && inside !== sample.inside)
      await Promise.all(
        ["inside", "why"].map((what) => queries.invalidateQueries({ queryKey: about(id, what) })),
      );
    else if (samples % LOOK_AT_HOLDS === 0 && isHeld(id))
      await queries.invalidateQueries({ queryKey: about(id, "why") });
    inside = sample.inside;
  }
}

function isHeld(id: string): boolean {
  return (queries.getQueryData<Why>(about(id, "why"))?.heldAwakeBy.length ?? 0) > 0;
}
