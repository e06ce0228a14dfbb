// `bun bench/endurance.ts [COUNT]`: so many execs and session commands through the SDK, and what the keeper has of
// descriptors, files and memory in between. Flat lines are the result.
import { readdirSync, readFileSync } from "node:fs";
import { Sandbox } from "holdfast";
import { keeperPid, TestServer } from "../e2e/harness.ts";

const count = Number(process.argv[2] ?? 10_000);
const server = await TestServer.start();
try {
  const sandbox = await Sandbox.create({ network: "none" }, server.at);
  const session = await sandbox.createSession();
  await series("exec", sandbox, () => sandbox.exec("true"));
  await series("session", sandbox, () => session.exec("N=$((N+1))"));
  process.stdout.write(`the session counted to ${(await session.exec("echo $N")).stdout}`);
} finally {
  await server.dispose();
}
process.exit(0);

async function series(name: string, sandbox: Sandbox, work: () => Promise<unknown>): Promise<void> {
  const keeper = await keeperPid(sandbox);
  process.stdout.write(
    `${name}: done, keeper's fds, processes in the sandbox, files of its state, keeper's anonymous memory, server's\n`,
  );
  for (let done = 0; done <= count; done += count / 5) {
    const facts = [
      done,
      descriptors(keeper),
      await processes(sandbox),
      files(sandbox),
      anonymousMiB(keeper),
      anonymousMiB(server.pid),
    ];
    process.stdout.write(`  ${facts.join("\t")}\n`);
    if (done < count)
      for (let i = 0; i < count / 5; i += 4) await Promise.all(Array.from({ length: 4 }, work));
  }
}

function descriptors(pid: number): number {
  return readdirSync(`/proc/${pid}/fd`).length;
}

async function processes(sandbox: Sandbox): Promise<number> {
  return Number((await sandbox.exec("ls -d /proc/[0-9]* | wc -l")).stdout);
}

function files(sandbox: Sandbox): number {
  const cwd = `${server.dataDir}/sandboxes/${sandbox.id}/state`;
  return [...new Bun.Glob("**").scanSync({ cwd, dot: true })].length;
}

function anonymousMiB(pid: number): string {
  const status = readFileSync(`/proc/${pid}/status`, "utf8");
  return `${Math.round(Number(/^RssAnon:\s+(\d+)/m.exec(status)?.[1]) / 1024)} MiB`;
}
