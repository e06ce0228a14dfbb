import { useState } from "react";

/** A command to copy. */
export function CommandLine({ text }: { text: string }) {
  const [copied, setCopied] = useState(false);
  const copy = async () => {
    await navigator.clipboard?.writeText(text);
    setCopied(true);
    setTimeout(() => setCopied(false), 1500);
  };
  return (
    <div className="command">
      <code>{text}</code>
      <button type="button" className="quiet" onClick={copy}>
        {copied ? "Copied" : "Copy"}
      </button>
    </div>
  );
}
