/** What a program that talks to Docker itself would do. */
import type { Dockers } from "./bench.ts";

/** A container that waits. */
export async function startByApi({ daemon, image }: Dockers): Promise<string> {
  const made = (await daemon.ask("POST", "/containers/create", {
    Image: image,
    Entrypoint: ["/bin/sleep", "1000000"],
    HostConfig: { NetworkMode: "none" },
  })) as { Id: string };
  await daemon.ask("POST", `/containers/${made.Id}/start`);
  return made.Id;
}

/** Waits for its end and asks how it was, as ours does. */
export async function execByApi({ daemon }: Dockers, id: string, command: readonly string[]): Promise<void> {
  const exec = (await daemon.ask("POST", `/containers/${id}/exec`, {
    Cmd: command,
    AttachStdout: true,
    AttachStderr: true,
  })) as { Id: string };
  const response = await fetch(`http://docker/exec/${exec.Id}/start`, {
    unix: daemon.host.replace("unix://", ""),
    method: "POST",
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify({ Detach: false, Tty: false }),
  });
  await response.arrayBuffer();
  const { ExitCode } = (await daemon.ask("GET", `/exec/${exec.Id}/json`)) as { ExitCode: number };
  if (ExitCode !== 0) throw new Error(`an exec by the API ended with ${ExitCode}`);
}

export async function removeByApi({ daemon }: Dockers, id: string): Promise<void> {
  await daemon.ask("DELETE", `/containers/${id}?force=1`);
}
