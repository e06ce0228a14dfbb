import { expect, test } from "bun:test";
import { ofCopies } from "./failpoints/lives.ts";
import { carryOut, findPoints, type Kill, nameOf, oneSideEach, someOf } from "./failpoints/sweep.ts";

/** Another side of each point at every run; HOLDFAST_CRASH_SEED repeats one. `npm run failpoints` does them all. */
const seed = Number(process.env.HOLDFAST_CRASH_SEED ?? Date.now() % 1_000_000);

/** Of the copies' points, in one run. */
const COPIES = 12;

test("scenario 55: a server that is killed at any point of any life leaves nothing wrong", async () => {
  const all = oneSideEach(await findPoints(), seed);
  const isOfCopies = ({ life }: Kill) => life.passes === ofCopies;
  const kills = [...all.filter((kill) => !isOfCopies(kill)), ...someOf(all.filter(isOfCopies), COPIES, seed)];
  const outcomes = await carryOut(kills);
  const wrong = outcomes.filter((outcome) => outcome.wrong.length > 0);
  expect({ seed, wrong: wrong.map((outcome) => [nameOf(outcome), ...outcome.wrong]) }).toEqual({
    seed,
    wrong: [],
  });
  const missed = outcomes.filter(({ died }) => !died).map(nameOf);
  expect({ seed, missed, kills: outcomes.length > 100 }).toEqual({ seed, missed: [], kills: true });
}, 300_000);
