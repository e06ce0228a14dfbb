import type { MouseEvent, ReactNode } from "react";
import { go, type Place, pathOf } from "../router.ts";

/** A link within the dashboard: a plain click stays on the page, and every other click is the browser's. */
export function Link({
  to,
  children,
  ...rest
}: {
  to: Place;
  children: ReactNode;
  className?: string;
  "aria-current"?: "page" | undefined;
}) {
  const onClick = (event: MouseEvent) => {
    if (event.defaultPrevented || event.button !== 0 || event.metaKey || event.ctrlKey || event.shiftKey)
      return;
    event.preventDefault();
    go(to);
  };
  return (
    <a href={pathOf(to)} onClick={onClick} {...rest}>
      {children}
    </a>
  );
}
