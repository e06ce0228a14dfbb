// `npm run failpoints [-- --times N] [-- --only TEXT] [-- --provider docker]`: kills a server at every point of every life, and looks at the
// world after each. Ends with the count.
import { parseArgs } from "node:util";
import { startDockerDaemon } from "@holdfast/testkit";
import { carryOut, findPoints, nameOf, type Outcome } from "./sweep.ts";

const { values } = parseArgs({
  options: {
    times: { type: "string", default: "3" },
    only: { type: "string", default: "" },
    provider: { type: "string", default: "local" },
  },
});
const daemon = values.provider === "docker" ? await startDockerDaemon() : undefined;
let done = 0;
let all = 0;
const { points, outcomes, networks } = await sweep().finally(() => daemon?.stop());
const killed = outcomes.filter(({ died }) => died).length;
const missed = new Set(outcomes.filter(({ died }) => !died).map(nameOf));
const wrong = outcomes.filter((outcome) => outcome.wrong.length > 0).length;
if (missed.size > 0) say(`not passed: ${[...missed].join(", ")}`);
say(
  `${killed} kills at ${points.length} points, ${missed.size} points not passed, ${wrong} left something wrong`,
);
if (networks.length > 0) say(`networks that nobody needs: ${networks.join(", ")}`);
process.exit(wrong === 0 && missed.size === 0 && networks.length === 0 ? 0 : 1);

async function sweep() {
  const points = (await findPoints({ daemon })).filter((kill) => nameOf(kill).includes(values.only));
  const kills = Array.from({ length: Number(values.times) }, () => points).flat();
  all = kills.length;
  say(`${points.length} points (each call, before and after), ${values.times} times each`);
  const outcomes = await carryOut(kills, { daemon, onOutcome: report });
  return { points, outcomes, networks: await networksLeft() };
}

async function networksLeft(): Promise<string[]> {
  const all = (await daemon?.ask("GET", "/networks")) as { Name: string }[] | undefined;
  return (all ?? []).map(({ Name }) => Name).filter((name) => name.startsWith("hf-"));
}

function report(outcome: Outcome): void {
  if (++done % 50 === 0) say(`${done} of ${all}`);
  if (outcome.wrong.length === 0) return;
  say(`WRONG after ${nameOf(outcome)}\n  ${outcome.wrong.join("\n  ")}`);
  say(`  again: npm run failpoints -- --provider ${values.provider} --times 1 --only '${nameOf(outcome)}'`);
}

function say(text: string): void {
  process.stdout.write(`${text}\n`);
}
