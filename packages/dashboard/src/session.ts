import { HoldfastError } from "holdfast";

/** Whether this browser has a session. The session itself is in a cookie that no script can read. */
export function isSignedIn(): Promise<boolean> {
  return ask("GET");
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
