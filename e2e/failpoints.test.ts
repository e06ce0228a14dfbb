import { expect, test } from "bun:test";
import { carryOut, findPoints, nameOf, oneSideEach } from "./failpoints/sweep.ts";

/** Another side of each point at every run; HOLDFAST_CRASH_SEED repeats one. `npm run failpoints` does them all. */
const seed = Number(process.env.HOLDFAST_CRASH_SEED ?? Date.now() % 1_000_000);

test("scenario 55: a server that is killed at any point of any life leaves nothing wrong", async () => {
  const kills = oneSideEach(await findPoints(), seed);
  const outcomes = await carryOut(kills);
  const wrong = outcomes.filter((outcome) => outcome.wrong.length > 0);
  expect({ seed, wrong: wrong.map((outcome) => [nameOf(outcome), ...outcome.wrong]) }).toEqual({
    seed,
    wrong: [],
  });
  const missed = outcomes.filter(({ died }) => !died).map(nameOf);
  expect({ seed, missed, kills: outcomes.length > 100 }).toEqual({ seed, missed: [], kills: true });
}, 300_000);
