// `npm run failpoints [-- --times N] [-- --only TEXT]`: kills a server at every point of every life, and looks at the
// world after each. Ends with the count.
import { parseArgs } from "node:util";
import { carryOut, findPoints, nameOf, type Outcome } from "./sweep.ts";

const { values } = parseArgs({
  options: { times: { type: "string", default: "3" }, only: { type: "string", default: "" } },
});
const points = (await findPoints()).filter((kill) => nameOf(kill).includes(values.only));
const kills = Array.from({ length: Number(values.times) }, () => points).flat();
say(`${points.length} points (each call, before and after), ${values.times} times each`);

let done = 0;
const outcomes = await carryOut(kills, report);
const killed = outcomes.filter(({ died }) => died).length;
const missed = new Set(outcomes.filter(({ died }) => !died).map(nameOf));
const wrong = outcomes.filter((outcome) => outcome.wrong.length > 0).length;
if (missed.size > 0) say(`not passed: ${[...missed].join(", ")}`);
say(
  `${killed} kills at ${points.length} points, ${missed.size} points not passed, ${wrong} left something wrong`,
);
process.exit(wrong === 0 && missed.size === 0 ? 0 : 1);

function report(outcome: Outcome): void {
  if (++done % 50 === 0) say(`${done} of ${kills.length}`);
  if (outcome.wrong.length === 0) return;
  say(`WRONG after ${nameOf(outcome)}\n  ${outcome.wrong.join("\n  ")}`);
  say(`  again: npm run failpoints -- --times 1 --only '${nameOf(outcome)}'`);
}

function say(text: string): void {
  process.stdout.write(`${text}\n`);
}
