import { failureOf } from "../server.ts";

/** What went wrong, with what to do about it. */
export function ErrorNote({ error }: { error: unknown }) {
  if (error === null || error === undefined) return null;
  const { message, hint } = failureOf(error);
  return (
    <div className="error-note" role="alert">
      <p>{message}</p>
      {hint !== undefined && <p className="hint">{hint}</p>}
    </div>
  );
}
