import { type RefObject, useEffect, useState } from "react";

export interface Rows {
  readonly first: number;
  readonly last: number;
  readonly aboveHeight: number;
  readonly belowHeight: number;
}

// Drawn beyond the edge, so that a quick scroll shows no gap.
const BEYOND = 12;

/** Which rows are in sight: only those are drawn, so that ten thousand cost as much as forty. All have one height. */
export function useRowsInSight(
  list: RefObject<HTMLElement | null>,
  { count, height }: { count: number; height: number },
): Rows {
  const [view, setView] = useState({ top: 0, height: 800 });
  useEffect(() => {
    const look = () => {
      const top = list.current?.getBoundingClientRect().top ?? 0;
      setView({ top: Math.max(0, -top), height: innerHeight });
    };
    look();
    addEventListener("scroll", look, { passive: true });
    addEventListener("resize", look);
    return () => {
      removeEventListener("scroll", look);
      removeEventListener("resize", look);
    };
  }, [list]);
  const first = Math.max(0, Math.min(count, Math.floor(view.top / height) - BEYOND));
  const last = Math.min(count, Math.ceil((view.top + view.height) / height) + BEYOND);
  return { first, last, aboveHeight: first * height, belowHeight: (count - last) * height };
}
