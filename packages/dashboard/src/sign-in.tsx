import { useMutation } from "@tanstack/react-query";
import { type SubmitEvent, useState } from "react";
import { signIn } from "./session.ts";
import { CommandLine } from "./ui/command.tsx";
import { ErrorNote } from "./ui/error-note.tsx";

export function SignIn({ onSignedIn }: { onSignedIn: () => void }) {
  const [token, setToken] = useState("");
  const entering = useMutation({ mutationFn: signIn, onSuccess: onSignedIn });
  const submit = (event: SubmitEvent) => {
    event.preventDefault();
    entering.mutate(token);
  };
  return (
    <main className="sign-in">
      <h1>Holdfast</h1>
      <p>Sandboxes for AI agents that are still there tomorrow.</p>
      <form onSubmit={submit}>
        <label htmlFor="token">Token</label>
        <input
          id="token"
          type="password"
          autoComplete="current-password"
          required
          value={token}
          onChange={(event) => setToken(event.target.value)}
        />
        <ErrorNote error={entering.error} />
        <button type="submit" className="primary" disabled={entering.isPending}>
          Sign in
        </button>
      </form>
      <details>
        <summary>Where is the token?</summary>
        <p>On the server's machine, this prints a link that signs you in without it:</p>
        <CommandLine text="npx holdfast dashboard" />
        <p>
          The token is in the file <code>token</code> in the server's data dir. The server says where that is
          when it starts. For root it is:
        </p>
        <CommandLine text="cat /var/lib/holdfast/token" />
        <p>For everybody else:</p>
        <CommandLine text="cat ~/.local/share/holdfast/token" />
      </details>
    </main>
  );
}
