import { useEffect, useEffectEvent, useRef, useState } from "react";
import { ErrorNote } from "../ui/error-note.tsx";
import { LogText } from "./log-text.ts";
import { held } from "./use-sandbox.ts";

/** A process's output, as it comes. It is text, whatever it is. */
export function LogView({
  id,
  processId,
  onEnd,
}: {
  id: string;
  processId: string;
  onEnd: () => Promise<void>;
}) {
  const [text, setText] = useState("");
  const [error, setError] = useState<unknown>();
  const box = useRef<HTMLElement>(null);
  const atEnd = useRef(true);
  const ended = useEffectEvent(() => void onEnd());
  useEffect(() => {
    const left = new AbortController();
    const log = new LogText(setText);
    const follow = async () => {
      const process = await (await held(id)).getProcess(processId);
      for await (const event of process.logs({ follow: true, signal: left.signal })) log.add(event);
      ended();
    };
    follow().catch((thrown: unknown) => {
      if (!left.signal.aborted) setError(thrown);
    });
    return () => left.abort();
  }, [id, processId]);
  // biome-ignore lint/correctness/useExhaustiveDependencies: more text is what makes it scroll
  useEffect(() => {
    if (box.current !== null && atEnd.current) box.current.scrollTop = box.current.scrollHeight;
  }, [text]);
  const onScroll = () => {
    const { scrollTop = 0, scrollHeight = 0, clientHeight = 0 } = box.current ?? {};
    atEnd.current = scrollTop + clientHeight >= scrollHeight - 4;
  };
  return (
    <>
      <ErrorNote error={error} />
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reached by keyboard */}
      <section ref={box} className="log" onScroll={onScroll} tabIndex={0} aria-label="Output">
        {text}
      </section>
    </>
  );
}
