import type { Process, Sandbox } from "holdfast";
import { byPrefix, unlessNotFound } from "./find-sandbox.ts";

/** The process that is meant by an id, or by the beginning of an id that only one of its sandbox has. */
export async function findProcess(sandbox: Sandbox, meant: string): Promise<Process> {
  const found = await sandbox.getProcess(meant).catch(unlessNotFound);
  if (found !== undefined) return found;
  const ids = (await sandbox.listProcesses()).map(({ processId }) => processId);
  return sandbox.getProcess(byPrefix(ids, meant, { what: "process", list: `holdfast ps ${sandbox.name}` }));
}
