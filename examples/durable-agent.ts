// An agent that can be killed at any moment, and its server as well. Run it, kill either with -9, and run it again: it
// goes on where it was. What it has done is in the sandbox; what it is doing has an id, and never runs twice.
import { Sandbox } from "holdfast";

const STEPS = [
  ["fetch", "sleep 0.3; echo 3 4 > numbers"],
  ["compute", "sleep 0.3; read a b < numbers; echo $((a * b)) > result; echo computed >> runs"],
  ["report", "sleep 0.3; echo the result is $(cat result), computed $(wc -l < runs) time"],
] as const;

await using sandbox = await Sandbox.getOrCreate({ name: "durable-agent", lifetimeSeconds: 3600 });

// A program that runs beside: it was started once, and is found again by its id.
const clock = await sandbox.startProcess("while date; do sleep 1; done", { processId: "clock" });
await clock.waitForLog(/\d/);
console.log(`clock: pid ${clock.pid}, since ${clock.startedAt}`);

for (const [name, command] of STEPS) {
  // The same id again attaches to the first run, whether it still runs or ended long ago.
  const { stdout, exitCode } = await sandbox.exec(command, { commandId: `step-${name}` });
  console.log(`${name}: ${exitCode} ${stdout.trim()}`);
}
