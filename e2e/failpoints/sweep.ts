import type { DockerDaemon } from "@holdfast/testkit";
import { seeded } from "../crash-clients.ts";
import { aftermath } from "./aftermath.ts";
import { type Life, lives } from "./lives.ts";
import { formatPoint, type Point, type Side } from "./point.ts";
import { Victim } from "./victim.ts";

/** Servers side by side: two cores have enough to do, because a restart waits more than it works. */
const LANES = 5;
/**
 * What a server remembers for a while, such as a measurement, it does not ask for again, and some things it does only when
 * it begins: so from the second try on, it is one that begins.
 */
const TRIES = 3;
/** Calls that change something: each of its first occurrences is a moment of its own. */
const CHANGES =
  /^(provider\.(launch|observe|stop|removeDisk)|keeper\.|vault\.(make|remove)|files\.|store\.(save|reserve|insert|give|bury|forget|ticket|takeDue|release))/;
const MOST_OCCURRENCES = 3;
/** How often a server looks for what is due in one life depends on when it happens to look. */
const BY_THE_CLOCK = /^store\.takeDue/;

/** On the provider `local`, or on a daemon's. */
export interface Where {
  readonly daemon?: DockerDaemon | undefined;
}

export interface Kill {
  readonly life: Life;
  readonly point: Point;
}

export interface Outcome extends Kill {
  readonly died: boolean;
  readonly wrong: readonly string[];
}

/** Every point of every life, on both sides. Lives each one once, undisturbed, to learn what it passes. */
export async function findPoints({
  only,
  ...where
}: Where & {
  /** The name of one life. */
  only?: string;
} = {}): Promise<Kill[]> {
  const victim = await Victim.start(where);
  try {
    const found: Kill[] = [];
    for (const life of lives.filter(({ name }) => only === undefined || name === only))
      found.push(...(await pointsOf(life, victim)));
    return found;
  } finally {
    await victim.close();
  }
}

/**
 * Every call that changes something once, on one side of it by chance. To die around a read is to die between the two
 * changes around it: those are left for the whole sweep.
 */
export function oneSideEach(all: readonly Kill[], seed: number): Kill[] {
  const random = seeded(seed);
  const kills = all.filter(({ point }) => CHANGES.test(point.label));
  return Array.from({ length: kills.length / 2 }, (_, i) => kills[2 * i + (random() < 0.5 ? 0 : 1)]).filter(
    (kill) => kill !== undefined,
  );
}

/** So many of them, by chance. */
export function someOf(kills: readonly Kill[], count: number, seed: number): Kill[] {
  const random = seeded(seed);
  const left = [...kills];
  return Array.from({ length: Math.min(count, left.length) }, () =>
    left.splice(Math.floor(random() * left.length), 1),
  ).flat();
}

/** Carries out all of them, on several servers, and says of each what was wrong afterwards. */
export async function carryOut(
  kills: readonly Kill[],
  { onOutcome = () => {}, ...where }: Where & { onOutcome?: (outcome: Outcome) => void } = {},
): Promise<Outcome[]> {
  const outcomes: Outcome[] = [];
  const queue = kills.entries();
  const lane = async () => {
    let victim = await Victim.start(where);
    try {
      for (const [i, kill] of queue) {
        const outcome = await dieAt(kill, { victim, name: `life-${i}` });
        outcomes.push(outcome);
        onOutcome(outcome);
        if (outcome.wrong.length === 0) continue;
        // What one left behind must not be held against the next.
        await victim.close();
        victim = await Victim.start(where);
      }
    } finally {
      await victim.close();
    }
  };
  await Promise.all(Array.from({ length: Math.min(LANES, kills.length) }, lane));
  return outcomes;
}

export function nameOf({ life, point }: Kill): string {
  return `${life.name}: ${formatPoint(point)}`;
}

async function dieAt(kill: Kill, { victim, name }: { victim: Victim; name: string }): Promise<Outcome> {
  for (let attempt = 1; ; attempt++) {
    const begins = attempt > 1;
    const wrong = await liveThrough(kill, { victim, name: `${name}-${attempt}`, begins });
    const died = victim.disarm() === "died";
    if (died || wrong.length > 0 || attempt === TRIES) return { ...kill, died, wrong };
  }
}

async function liveThrough(
  { life, point }: Kill,
  { victim, name, begins }: { victim: Victim; name: string; begins: boolean },
): Promise<string[]> {
  const world = { client: victim.client, name, ...endsOf(victim) };
  try {
    await life.before?.(world);
    victim.arm(point);
    if (begins) await victim.restart();
    const lived = await life.live(world);
    const doubles = victim.doubles().map((id) => `two keepers at a time: ${id}`);
    return [...doubles, ...(await aftermath(victim, lived))];
  } catch (error) {
    return [error instanceof Error ? (error.stack ?? error.message) : String(error)];
  }
}

async function pointsOf(life: Life, victim: Victim): Promise<Kill[]> {
  const world = {
    client: victim.client,
    name: `undisturbed-${lives.indexOf(life)}`,
    ...endsOf(victim),
  };
  await life.before?.(world);
  const labels = await victim.record(() => life.live(world));
  const counted = new Map<string, number>();
  for (const label of labels.filter((label) => life.passes?.test(label) ?? true))
    counted.set(label, (counted.get(label) ?? 0) + 1);
  const occurrences = [...counted].flatMap(([label, count]) =>
    Array.from({ length: isRepeated(label) ? Math.min(count, MOST_OCCURRENCES) : 1 }, (_, i) => ({
      label,
      occurrence: i + 1,
    })),
  );
  const sides: readonly Side[] = ["before", "after"];
  return occurrences.flatMap((occurrence) => sides.map((side) => ({ life, point: { ...occurrence, side } })));
}

function endsOf(victim: Victim) {
  return { restart: () => victim.restart(), end: () => victim.restart("SIGTERM") };
}

function isRepeated(label: string): boolean {
  return CHANGES.test(label) && !BY_THE_CLOCK.test(label);
}
