import { useMutation, useQuery } from "@tanstack/react-query";
import { useCallback, useState } from "react";
import { useKeys } from "./keyboard.ts";
import { useLive } from "./live.ts";
import { OperatorPage } from "./operator/operator-page.tsx";
import { go, usePlace } from "./router.ts";
import { SandboxPage } from "./sandbox/sandbox-page.tsx";
import { SandboxesPage } from "./sandboxes/sandboxes-page.tsx";
import { queries, SESSION } from "./server.ts";
import { isSignedIn, signOut } from "./session.ts";
import { SignIn } from "./sign-in.tsx";
import { setTheme, type Theme, useTheme } from "./theme.ts";
import { Dialog } from "./ui/dialog.tsx";
import { ErrorNote } from "./ui/error-note.tsx";
import { Link } from "./ui/link.tsx";

export function App() {
  const session = useQuery({ queryKey: SESSION, queryFn: isSignedIn });
  const signedIn = () => queries.setQueryData(SESSION, true);
  if (session.error !== null) return <ErrorNote error={session.error} />;
  if (session.data === undefined) return null;
  return session.data ? <Dashboard /> : <SignIn onSignedIn={signedIn} />;
}

function Dashboard() {
  const onSignedOut = useCallback(() => {
    queries.setQueryData(SESSION, false);
    // Nothing of what was seen stays for whoever is next.
    queries.removeQueries({ predicate: ({ queryKey }) => queryKey[0] !== SESSION[0] });
  }, []);
  const leaving = useMutation({ mutationFn: signOut, onSuccess: onSignedOut });
  const line = useLive({ onSignedOut });
  const place = usePlace();
  const [helping, setHelping] = useState(false);
  useKeys({ "?": () => setHelping(true) });
  return (
    <>
      <header className="top">
        <Link to={{ page: "sandboxes" }} className="brand">
          <img src="/assets/icon.svg" alt="" width="24" height="24" />
          Holdfast
        </Link>
        <nav aria-label="Pages">
          <Link to={{ page: "sandboxes" }} aria-current={place.page === "operator" ? undefined : "page"}>
            Sandboxes
          </Link>
          <Link to={{ page: "operator" }} aria-current={place.page === "operator" ? "page" : undefined}>
            Operator
          </Link>
        </nav>
        <span className="grow" />
        <span className={`line ${line}`} role="status">
          {line === "live" ? "live" : "reconnecting …"}
        </span>
        <ThemeChoice />
        <button
          type="button"
          className="quiet"
          onClick={() => setHelping(true)}
          aria-label="Keyboard shortcuts"
        >
          ?
        </button>
        <button type="button" className="quiet" onClick={() => leaving.mutate()}>
          Sign out
        </button>
      </header>
      <main>
        <ErrorNote error={leaving.error} />
        {place.page === "sandboxes" && <SandboxesPage />}
        {place.page === "operator" && <OperatorPage />}
        {place.page === "sandbox" && <SandboxPage key={place.id} id={place.id} tab={place.tab} />}
      </main>
      {helping && <Shortcuts onClose={() => setHelping(false)} />}
    </>
  );
}

const nextTheme: Record<Theme, Theme> = { system: "light", light: "dark", dark: "system" };
const themeSign: Record<Theme, string> = { system: "◐", light: "○", dark: "●" };

function ThemeChoice() {
  const theme = useTheme();
  return (
    <button
      type="button"
      className="quiet"
      aria-label={`Colours: ${theme}`}
      title={`Colours: ${theme}`}
      onClick={() => setTheme(nextTheme[theme])}
    >
      {themeSign[theme]}
    </button>
  );
}

const shortcuts = [
  ["j, k or ↓, ↑", "down and up the list"],
  ["Enter", "open the sandbox"],
  ["/", "filter"],
  ["n", "new sandbox"],
  ["Escape", "back to the list, or close a dialog"],
  ["Ctrl-F6", "out of a terminal, whose other keys are the program's"],
  ["?", "this"],
];

function Shortcuts({ onClose }: { onClose: () => void }) {
  const place = usePlace();
  return (
    <Dialog title="Keys" onClose={onClose}>
      <dl className="keys">
        {shortcuts.map(([keys, what]) => (
          <div key={keys}>
            <dt>{keys}</dt>
            <dd>{what}</dd>
          </div>
        ))}
      </dl>
      <div className="buttons">
        {place.page !== "sandboxes" && (
          <button type="button" onClick={() => go({ page: "sandboxes" })}>
            To the list
          </button>
        )}
        <button type="button" className="primary" onClick={onClose}>
          Close
        </button>
      </div>
    </Dialog>
  );
}
