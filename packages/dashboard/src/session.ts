import { HoldfastError } from "holdfast";

/** Whether this browser has a session. The session itself is in a cookie that no script can read. */
export async function isSignedIn(): Promise<boolean> {
  const code = takeCode();
  // A link that was used before is no reason to be sent out; who is not in is asked for the token.
  if (code !== undefined) await ask("POST", { code }).catch(() => undefined);
  return ask("GET");
}

/** From a link of `holdfast dashboard`; out of the address, and of the history, before anything else. */
function takeCode(): string | undefined {
  const code = /^#code=([\w-]+)$/.exec(location.hash)?.[1];
  if (code !== undefined) history.replaceState(null, "", location.pathname);
  return code;
}

export async function signIn(token: string): Promise<void> {
  await ask("POST", { token });
}

export async function signOut(): Promise<void> {
  await ask("DELETE");
}

async function ask(method: string, body?: unknown): Promise<boolean> {
  const response = await fetch("/session", {
    method,
    ...(body !== undefined && {
      body: JSON.stringify(body),
      headers: { "Content-Type": "application/json" },
    }),
  });
  const answer = await response.json();
  if (!response.ok) throw HoldfastError.fromBody(answer);
  return (answer as { signedIn: boolean }).signedIn;
}
